// SPDX-License-Identifier: GPL-2.0

//! Print formats of the kernel events that rtrace itself declares. Their fields have LTTng's names.

/// Fields of a task, in many events.
const TASK: &str = "comm={comm} pid={tid} prio={prio:prio}";
/// A task that is woken.
const WAKE: &str = "comm={comm} pid={tid} prio={prio:prio} target_cpu={target_cpu:cpu}";
/// A soft interrupt.
const SOFTIRQ: &str = "vec={vec} [action={vec:action}]";
/// A time that a task spent waiting.
const DELAY: &str = "comm={comm} pid={tid} delay={delay} [ns]";

/// Returns the format of an event, if it is known: see [`Template`](super::template::Template).
pub fn of(event: &str) -> Option<&'static str> {
    Some(match event {
        "sched_switch" => {
            "prev_comm={prev_comm} prev_pid={prev_tid} prev_prio={prev_prio:prio} \
             prev_state={prev_state:state} ==> \
             next_comm={next_comm} next_pid={next_tid} next_prio={next_prio:prio}"
        }
        "sched_waking" | "sched_wakeup" | "sched_wakeup_new" => WAKE,
        "sched_migrate_task" => {
            "comm={comm} pid={tid} prio={prio:prio} orig_cpu={orig_cpu} dest_cpu={dest_cpu}"
        }
        "sched_process_exit" => {
            "comm={comm} pid={tid} prio={prio:prio} group_dead={group_dead:bool}"
        }
        "sched_process_free" | "sched_process_wait" => TASK,
        "sched_process_fork" => {
            "comm={parent_comm} pid={parent_tid} child_comm={child_comm} child_pid={child_tid}"
        }
        "sched_process_exec" => "filename={filename} pid={tid} old_pid={old_tid}",
        "task_rename" => {
            "pid={tid} oldcomm={oldcomm} newcomm={newcomm} oom_score_adj={oom_score_adj}"
        }
        "sched_stat_runtime" => "comm={comm} pid={tid} runtime={runtime} [ns]",
        "sched_stat_wait" | "sched_stat_sleep" | "sched_stat_iowait" | "sched_stat_blocked" => {
            DELAY
        }
        "sched_pi_setprio" => "comm={comm} pid={tid} oldprio={oldprio:prio} newprio={newprio:prio}",
        "irq_handler_entry" => "irq={irq} name={name}",
        "irq_handler_exit" => "irq={irq} ret={ret:handled}",
        "irq_softirq_entry" | "irq_softirq_exit" | "irq_softirq_raise" => SOFTIRQ,
        _ => return None,
    })
}
