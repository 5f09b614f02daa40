/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Kernel stacks by learnt rules, for rust/sys/stack.c on kernels with the ORC unwinder. NMI-safe.
 *
 * The rule of an address says where a function keeps its return address and its caller's frame pointer while it runs
 * there. It is constant while the code is loaded. The kernel has the rules in tables that modules cannot read. But
 * unwind_next_frame() applies a rule to any state it is given. So the rule of an address is learnt from its answers for
 * a made-up frame, whose stack contains known words. A walk then applies the rule itself, to the words that the real
 * stack has at that moment.
 *
 * The state of a walk is the kernel's own. So the kernel takes each step that no simple rule describes, and the walk
 * continues with rules after it.
 *
 * Learning takes no lock and needs no memory: the made-up stack is constant once the module is loaded, and all that
 * changes is on the learner's stack. A rule is one word with its address. So a reader sees a rule or none, also in an NMI
 * that interrupts the writer.
 */
#include <linux/kallsyms.h>
#include <linux/kobject.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/notifier.h>
#include <linux/sched/task.h>
#include <linux/sched/task_stack.h>
#include <linux/string.h>

/*
 * A rule. Of CALL, with the base sp or, with FROM_BP, bp: the return address is RETURN_AT bytes above the base, and the
 * caller's bp is SAVED_BELOW bytes below the return address; 0 if bp has not changed. The other values are the whole
 * lower half.
 */
#define CALL		1u
#define FROM_BP		2u
#define SAVED_BELOW	0xfff8u
#define RETURN_AT	16		/* shift */
#define UNKNOWN		0u	/* or no code */
#define END		2u		/* the outermost function */
#define REGISTERS	4u		/* struct pt_regs is as many bytes above sp as RETURN_AT says */
#define REPLACED	6u		/* the function that a tracer has put in place of the return address */
#define KERNEL_STEPS	8u
#define KIND		0xffffu

/*
 * The known rules: two for each slot. In the upper half, behind the lower half of the address: the upper half of all code
 * is the same.
 */
#define SLOT_BITS 11
static u64 newer[1 << SLOT_BITS], older[1 << SLOT_BITS];

static __always_inline unsigned int slot_of(u64 pc)
{
	return pc * 0x9e3779b97f4a7c15 >> (64 - SLOT_BITS);
}

static __always_inline u32 rule_in(const u64 *rules, u64 pc)
{
	u64 rule = READ_ONCE(rules[slot_of(pc)]);

	return (u32)rule == (u32)pc ? rule >> 32 : UNKNOWN;
}

/* The older rule of the slot is forgotten: so two addresses of a stack that have the same slot do not replace each other. */
static notrace void keep_rule(u64 pc, u32 rule)
{
	unsigned int slot = slot_of(pc);

	WRITE_ONCE(older[slot], READ_ONCE(newer[slot]));
	WRITE_ONCE(newer[slot], (u64)rule << 32 | (u32)pc);
}

/* The made-up stack. Word i is MADE_UP + i. */
#define MADE_UP 0x5a5a000000000000
static u64 made_up[1024];

/* The index of the word that this is; more than there are if it is none. */
static __always_inline u64 made_up_index(u64 word)
{
	return word - MADE_UP;
}

/*
 * The code of live modules. Rules of addresses elsewhere in the modules' area are not kept: code for BPF and ftrace, and
 * that for the initialisation of modules, comes and goes without notice.
 */
static u64 module_texts[512];		/* lower half of the address, and size; 0: free */
static unsigned int module_texts_used;
static DEFINE_MUTEX(module_texts_lock);

static notrace bool is_module_text(u64 pc)
{
	unsigned int i, used = READ_ONCE(module_texts_used);

	for (i = 0; i < used; i++) {
		u64 text = READ_ONCE(module_texts[i]);

		if ((u32)pc - (u32)(text >> 32) < (u32)text)
			return true;
	}
	return false;
}

/* Function graph and return probes replace return addresses by these. The kernel knows the replaced ones. */
static noinline notrace bool is_replacement(u64 address)
{
	char name[KSYM_SYMBOL_LEN];

	sprint_symbol_no_offset(name, address);
	return !strcmp(name, "return_to_handler") || !strcmp(name, "arch_rethook_trampoline");
}

/* Lets the kernel step from a made-up frame, which is no frame of this task: then no step is worth a warning. */
static notrace bool ask(struct unwind_state *state, u64 pc, u64 sp, u64 bp)
{
	*state = (struct unwind_state){
		.stack_info = {
			.type = STACK_TYPE_TASK,
			.begin = (unsigned long *)made_up,
			.end = (unsigned long *)made_up + ARRAY_SIZE(made_up),
		},
		.stack_mask = ~0ul,	/* no other stack is entered */
		.task = &init_task,
		.error = current == &init_task,
		.signal = true,		/* the address itself, not the one before */
		.sp = sp,
		.bp = bp,
		.ip = pc,
	};
	return unwind_next_frame(state);
}

/* The rule of an address of code, from the kernel's answers for two values of bp. */
static notrace u32 rule_of(u64 pc)
{
	const u64 begin = (u64)made_up, sp = begin + 16 * 8, bp = begin + 512 * 8, other_bp = bp + 64 * 8;
	struct unwind_state one, other;
	u64 base = sp, at, below = 0;
	u32 rule = CALL;

	if (!ask(&one, pc, sp, bp))
		/* The first task's own walks do not learn the end: see ask(). */
		return one.error ? KERNEL_STEPS : END;
	if (!ask(&other, pc, sp, other_bp))
		return KERNEL_STEPS;
	if (one.regs) {
		at = (u64)one.regs - sp;
		return one.regs == other.regs && one.full_regs && !(at & 7) && at <= U16_MAX ?
			at << RETURN_AT | REGISTERS : KERNEL_STEPS;
	}
	if (other.sp - one.sp == other_bp - bp) {
		base = bp;
		rule |= FROM_BP;
	} else if (other.sp != one.sp) {
		return KERNEL_STEPS;
	}
	at = one.sp - sizeof(u64);
	if (one.signal || one.ip != MADE_UP + (at - begin) / 8 || at - base > U16_MAX || (at & 7))
		return KERNEL_STEPS;
	if (one.bp != bp || other.bp != other_bp) {
		below = at - begin - made_up_index(one.bp) * 8;
		if (!below || below & ~(u64)SAVED_BELOW ||
		    other.sp - sizeof(u64) - begin - made_up_index(other.bp) * 8 != below)
			return KERNEL_STEPS;
	}
	return (at - base) << RETURN_AT | below | rule;
}

/*
 * The rule of an address that is in a stack, where no rule is known; UNKNOWN if it is no code. The code cannot go before
 * this returns: the stack is that of the code that runs here, and the rule is kept before.
 */
static noinline notrace u32 learn(struct unwind_state *state)
{
	u64 pc = state->ip - !state->signal;
	u32 rule;

	if (!unwind_get_return_address(state))
		return UNKNOWN;
	/* Code is seldom interrupted again at the same address. */
	if (state->regs || (pc >= MODULES_VADDR && !is_module_text(pc)))
		return KERNEL_STEPS;
	rule = pc < MODULES_VADDR && is_replacement(state->ip) ? REPLACED : rule_of(pc);
	if (rule != KERNEL_STEPS || current != &init_task)
		keep_rule(pc, rule);
	return rule;
}

/* The first instruction of a function, where the return address is at sp. */
static notrace u32 walk_by_rules(u64 ip, u64 sp, u64 bp, struct pt_regs *regs, u64 *addresses, u32 room);

/*
 * The rule of a frame that a step has reached, and that has not been stored. UNKNOWN if its address is not one of code,
 * which ends the stack. If the step was one by rules, and the return address was replaced, the kernel reads it again, and
 * finds the replaced one.
 */
static noinline notrace u32 reached(struct unwind_state *state, bool by_rules)
{
	u64 pc = state->ip - !state->signal;
	u32 rule = rule_in(newer, pc) ?: rule_in(older, pc) ?: learn(state);

	if (rule != REPLACED)
		return rule;
	if (!by_rules)
		return KERNEL_STEPS;
	state->ip = (u64)walk_by_rules;
	state->sp -= sizeof(u64);
	state->signal = true;
	return unwind_next_frame(state) ? reached(state, false) : UNKNOWN;
}

/* Whether the kernel was entered from a program with these registers, which ends the stack. */
static __always_inline bool enters_from_user(u64 sp, u32 rule, u64 last)
{
	struct pt_regs *regs = (struct pt_regs *)(sp + (rule >> RETURN_AT));

	return (u64)&regs->ss <= last && user_mode(regs);
}

/* The caller's frame, to which rules have led. */
static __always_inline void move_to(struct unwind_state *state, u64 ip, u64 sp, u64 bp)
{
	state->ip = ip;
	state->sp = sp;
	state->bp = bp;
	state->signal = false;
	state->regs = NULL;
	state->prev_regs = NULL;
}

/* Where the CPU's stack for interrupts begins, which never changes; 0: not known. */
static DEFINE_PER_CPU(u64, known_irq_stack);

/* As walk(), with the same addresses. @regs: those of the first frame, or NULL. */
static notrace u32 walk_by_rules(u64 ip, u64 sp, u64 bp, struct pt_regs *regs, u64 *addresses, u32 room)
{
	u64 stack = (u64)task_stack_page(current), irq_stack = this_cpu_read(known_irq_stack);
	bool is_irq = irq_stack && sp - irq_stack < IRQ_STACK_SIZE;
	u64 last = is_irq ? irq_stack + IRQ_STACK_SIZE - sizeof(u64) : stack + THREAD_SIZE - sizeof(u64);
	struct unwind_state state = {
		.stack_info = {
			.type = is_irq ? STACK_TYPE_IRQ : STACK_TYPE_TASK,
			.begin = (unsigned long *)(is_irq ? irq_stack : stack),
			.end = (unsigned long *)last + 1,
		},
		.stack_mask = 1ul << (is_irq ? STACK_TYPE_IRQ : STACK_TYPE_TASK),
		.task = current,
		.error = true,	/* no step is worth a warning in the kernel's log */
		.signal = true,
		.full_regs = regs,
		.sp = sp,
		.bp = bp,
		.ip = ip,
		.regs = regs,
	};
	struct pt_regs frame __uninitialized;
	u32 taken = 0, rule;

	if (!is_irq && sp - stack >= THREAD_SIZE) {
		/* Only the kernel knows the bounds of this stack. */
		if (!regs) {
			frame = registers_at(ip, sp, bp);
			regs = &frame;
		}
		unwind_start(&state, current, regs, NULL);
		state.error = true;
		if (state.stack_info.type == STACK_TYPE_IRQ)
			this_cpu_write(known_irq_stack, (u64)state.stack_info.begin);
		goto stepped;
	}
	rule = rule_in(newer, ip) ?: reached(&state, false);
	for (;;) {
		while (rule & CALL) {
			u64 at = (rule & FROM_BP ? bp : sp) + (rule >> RETURN_AT), below = rule & SAVED_BELOW;

			if (at < sp || at > last || at - below < sp)
				break;
			ip = READ_ONCE_NOCHECK(*(u64 *)at);
			if (below)
				bp = READ_ONCE_NOCHECK(*(u64 *)(at - below));
			sp = at + sizeof(u64);
			rule = rule_in(newer, ip - 1);
			if (!(rule & CALL)) {
				move_to(&state, ip, sp, bp);
				rule = reached(&state, true);
				goto reached;
			}
			addresses[taken++] = ip;
			if (taken == room)
				return taken;
		}
		if (sp != state.sp)
			move_to(&state, ip, sp, bp);
		if ((rule & KIND) == REGISTERS && enters_from_user(sp, rule, last))
			return taken;
		unwind_next_frame(&state);
stepped:
		if (unwind_done(&state))
			return taken;
		rule = reached(&state, false);
reached:
		if (rule == UNKNOWN)
			return taken;
		addresses[taken++] = state.ip;
		if (rule == END || taken == room)
			return taken;
		ip = state.ip;
		sp = state.sp;
		bp = state.bp;
		last = (u64)state.stack_info.end - sizeof(u64);
	}
}

static notrace void add_module_text(const struct module *module)
{
	const struct module_memory *memory = &module->mem[MOD_TEXT];
	u64 text = (u64)memory->base << 32 | memory->size;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(module_texts); i++) {
		if (module_texts[i])
			continue;
		WRITE_ONCE(module_texts[i], text);
		if (i >= module_texts_used)
			WRITE_ONCE(module_texts_used, i + 1);
		break;
	}
}

static notrace void forget_rules(void)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(newer); i++) {
		WRITE_ONCE(newer[i], 0);
		WRITE_ONCE(older[i], 0);
	}
}

/*
 * Forgets the rules of a module's code, none of which is in a stack any more. So no walk learns or uses a rule of it at the
 * same time. But a walk that began before may make one of them the older rule of its slot. May sleep.
 */
static notrace void forget_module_text(const struct module *module)
{
	u64 base = (u64)module->mem[MOD_TEXT].base;
	unsigned int i;

	for (i = 0; i < module_texts_used; i++)
		if (module_texts[i] >> 32 == (u32)base)
			WRITE_ONCE(module_texts[i], 0);
	forget_rules();
	/* No walk is preempted. */
	synchronize_rcu();
	forget_rules();
}

static int on_module(struct notifier_block *block, unsigned long state, void *data)
{
	guard(mutex)(&module_texts_lock);
	if (state == MODULE_STATE_COMING)
		add_module_text(data);
	else if (state == MODULE_STATE_GOING)
		forget_module_text(data);
	return NOTIFY_OK;
}

static struct notifier_block module_block = { .notifier_call = on_module };

/* Before the first walk. May sleep. */
static int rules_begin(void)
{
	struct kset *modules = THIS_MODULE->mkobj.kobj.kset;
	struct kobject *entry;
	unsigned int i;
	int err;

	for (i = 0; i < ARRAY_SIZE(made_up); i++)
		made_up[i] = MADE_UP + i;
	err = register_module_notifier(&module_block);
	if (err)
		return err;
	/* A module is in this list from after its first notice to after its last one. */
	guard(mutex)(&module_texts_lock);
	guard(spinlock)(&modules->list_lock);
	list_for_each_entry(entry, &modules->list, entry) {
		struct module *module = container_of(entry, struct module_kobject, kobj)->mod;

		if (module && module->state != MODULE_STATE_GOING)
			add_module_text(module);
	}
	return 0;
}

/* After the last walk. May sleep. */
static void rules_end(void)
{
	unregister_module_notifier(&module_block);
}
