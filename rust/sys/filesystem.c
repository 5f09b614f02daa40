// SPDX-License-Identifier: GPL-2.0
/*
 * The file system `rtrace`: one superblock, whose files the tree (tree.rs) creates when it is mounted, and while it is.
 * It has no file of its own. Lockdown, which closes debugfs, leaves it open.
 */
#include <linux/dcache.h>
#include <linux/fs.h>
#include <linux/fs_context.h>
#include <linux/fs_parser.h>
#include <linux/fsnotify.h>
#include <linux/kobject.h>
#include <linux/module.h>
#include <linux/namei.h>
#include <linux/pagemap.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/sysfs.h>
#include <linux/uidgid.h>

#include "helpers.h"
#include "linux.h"

/* f_type of statfs(2): "rtrc". */
#define MAGIC 0x72747263

static void *tree;
static const struct rtrace_tree_operations *tree_operations;

enum { OPT_UID, OPT_GID, OPT_MODE, OPT_PROGRAMS };

/*
 * Owner of all files, and mode of the directories, which also limits that of the files; and the group of the file
 * `program`, or INVALID_GID.
 */
struct access {
	kuid_t uid;
	kgid_t gid;
	kgid_t programs;
	umode_t mode;
	unsigned int given;	/* bits of the given mount options */
};

static const struct fs_parameter_spec parameters[] = {
	fsparam_uid("uid", OPT_UID),
	fsparam_gid("gid", OPT_GID),
	fsparam_u32oct("mode", OPT_MODE),
	fsparam_gid("programs", OPT_PROGRAMS),
	{}
};

static int parse(struct fs_context *fc, struct fs_parameter *param)
{
	struct access *access = fc->s_fs_info;
	struct fs_parse_result result;
	int opt = fs_parse(fc, parameters, param, &result);

	switch (opt) {
	case OPT_UID:
		access->uid = result.uid;
		break;
	case OPT_GID:
		access->gid = result.gid;
		break;
	case OPT_MODE:
		if (!rtrace_is_mode(result.uint_32))
			return invalfc(fc, "mode=%o: it must be between 0700 and 0777", result.uint_32);
		access->mode = result.uint_32;
		break;
	case OPT_PROGRAMS:
		access->programs = result.gid;
		break;
	default:
		return opt;
	}
	access->given |= BIT(opt);
	return 0;
}

/* Changes the given options of a mounted file system. The caller holds s_umount. */
static void change(struct super_block *sb, const struct access *new)
{
	struct access *access = sb->s_fs_info;

	if (new->given & BIT(OPT_UID))
		WRITE_ONCE(access->uid, new->uid);
	if (new->given & BIT(OPT_GID))
		WRITE_ONCE(access->gid, new->gid);
	if (new->given & BIT(OPT_MODE))
		WRITE_ONCE(access->mode, new->mode);
	if (new->given & BIT(OPT_PROGRAMS))
		WRITE_ONCE(access->programs, new->programs);
	if (new->given)
		tree_operations->set_access(tree);
}

static int reconfigure(struct fs_context *fc)
{
	change(fc->root->d_sb, fc->s_fs_info);
	return 0;
}

static int show_options(struct seq_file *to, struct dentry *root)
{
	const struct access *access = root->d_sb->s_fs_info;

	seq_printf(to, ",uid=%u,gid=%u,mode=%03o", from_kuid_munged(&init_user_ns, access->uid),
		   from_kgid_munged(&init_user_ns, access->gid), access->mode);
	if (gid_valid(access->programs))
		seq_printf(to, ",programs=%u", from_kgid_munged(&init_user_ns, access->programs));
	return 0;
}

static void evict_inode(struct inode *inode)
{
	truncate_inode_pages_final(&inode->i_data);
	clear_inode(inode);
	if (inode->i_private)
		tree_operations->put(inode->i_private);
}

static const struct super_operations super_operations = {
	.statfs = simple_statfs,
	.evict_inode = evict_inode,
	.show_options = show_options,
};

static const struct inode_operations file_operations = {
	.setattr = simple_setattr,
};

static const struct inode_operations dir_operations = {
	.lookup = simple_lookup,
	.setattr = simple_setattr,
};

/*
 * readdir(3) copies names to user memory, and the kernel holds the directory's lock meanwhile. Another process may keep
 * that memory away for ever (FUSE, userfaultfd), and the creation and removal of files wait for the lock. So an open
 * directory collects names under the lock, and copies them without it.
 */
struct open_dir {
	struct dentry *cursor;	/* of dcache_readdir() */
	loff_t pos;		/* of the cursor: that of the name after the collected ones */
	size_t len;		/* of the collected names */
	size_t next;		/* the first name that was not copied */
	char names[4064] __aligned(8);
};

/* A collected name. */
struct dir_name {
	loff_t pos;
	u64 ino;
	unsigned int type;
	int len;
	char text[];
};

struct collector {
	struct dir_context ctx;
	struct open_dir *to;
};

static size_t size_of_name(int len)
{
	return ALIGN(sizeof(struct dir_name) + len, 8);
}

static bool collect(struct dir_context *ctx, const char *text, int len, loff_t pos, u64 ino, unsigned int type)
{
	struct open_dir *to = container_of(ctx, struct collector, ctx)->to;
	struct dir_name *name = (void *)(to->names + to->len);

	if (size_of_name(len) > sizeof(to->names) - to->len)
		return false;
	*name = (struct dir_name){ .pos = pos, .ino = ino, .type = type, .len = len };
	memcpy(name->text, text, len);
	to->len += size_of_name(len);
	return true;
}

/* Collects the next names. The caller holds the lock of the directory, and that of the file's position. */
static void collect_names(struct file *file, struct open_dir *dir)
{
	struct collector collector = { .ctx = { .actor = collect, .pos = dir->pos }, .to = dir };

	dir->len = dir->next = 0;
	file->private_data = dir->cursor;
	dcache_readdir(file, &collector.ctx);
	file->private_data = dir;
	dir->pos = collector.ctx.pos;
}

/* Copies the collected names. Returns whether there was room for all. */
static bool copy_names(struct open_dir *dir, struct dir_context *ctx)
{
	while (dir->next < dir->len) {
		struct dir_name *name = (void *)(dir->names + dir->next);

		ctx->pos = name->pos;
		if (!dir_emit(ctx, name->text, name->len, name->ino, name->type))
			return false;
		ctx->pos++;
		dir->next += size_of_name(name->len);
	}
	return true;
}

/* The caller holds the lock of the directory, which is held again when this returns. */
static int dir_iterate(struct file *file, struct dir_context *ctx)
{
	struct open_dir *dir = file->private_data;
	bool goes_on;

	do {
		if (dir->next == dir->len)
			collect_names(file, dir);
		if (dir->next == dir->len)
			break;
		inode_unlock_shared(file_inode(file));
		goes_on = copy_names(dir, ctx);
		inode_lock_shared(file_inode(file));
	} while (goes_on);
	return 0;
}

static loff_t dir_llseek(struct file *file, loff_t offset, int whence)
{
	struct open_dir *dir = file->private_data;

	if (whence == SEEK_CUR)
		offset += file->f_pos;
	else if (whence != SEEK_SET)
		return -EINVAL;
	if (offset < 0)
		return -EINVAL;
	if (offset == file->f_pos)
		return offset;
	/* The cursor is after the collected names. */
	file->f_pos = dir->pos;
	dir->len = dir->next = 0;
	dir->pos = offset;
	file->private_data = dir->cursor;
	offset = dcache_dir_lseek(file, offset, SEEK_SET);
	file->private_data = dir;
	return offset;
}

static int dir_open(struct inode *inode, struct file *file)
{
	struct open_dir *dir = kzalloc(sizeof(*dir), GFP_KERNEL_ACCOUNT);
	int err = dir ? dcache_dir_open(inode, file) : -ENOMEM;

	if (err) {
		kfree(dir);
		return err;
	}
	dir->cursor = file->private_data;
	file->private_data = dir;
	return 0;
}

static int dir_release(struct inode *inode, struct file *file)
{
	struct open_dir *dir = file->private_data;

	file->private_data = dir->cursor;
	dcache_dir_close(inode, file);
	kfree(dir);
	return 0;
}

static const struct file_operations dir_file_operations = {
	.owner = THIS_MODULE,
	.open = dir_open,
	.release = dir_release,
	.llseek = dir_llseek,
	.read = generic_read_dir,
	.iterate_shared = dir_iterate,
	.fsync = noop_fsync,
};

static struct inode *new_dir(struct super_block *sb)
{
	struct inode *inode = new_inode(sb);

	if (!inode)
		return NULL;
	inode->i_ino = get_next_ino();
	simple_inode_init_ts(inode);
	inode->i_mode = S_IFDIR;
	inode->i_op = &dir_operations;
	inode->i_fop = &dir_file_operations;
	inc_nlink(inode);
	return inode;
}

static int fill_super(struct super_block *sb, struct fs_context *fc)
{
	struct inode *inode;

	sb->s_maxbytes = MAX_LFS_FILESIZE;
	sb->s_blocksize = PAGE_SIZE;
	sb->s_blocksize_bits = PAGE_SHIFT;
	sb->s_magic = MAGIC;
	sb->s_op = &super_operations;
	sb->s_time_gran = 1;
	sb->s_iflags |= SB_I_NOEXEC | SB_I_NODEV;
	rtrace_forget_unused(sb);
	inode = new_dir(sb);
	sb->s_root = d_make_root(inode);
	if (!sb->s_root)
		return -ENOMEM;
	return tree_operations->fill(tree, sb->s_root);
}

static int get_tree(struct fs_context *fc)
{
	int err = get_tree_single(fc, fill_super);

	/* A new superblock has taken the options over. */
	if (!err && fc->s_fs_info)
		change(fc->root->d_sb, fc->s_fs_info);
	return err;
}

static void free_context(struct fs_context *fc)
{
	kfree(fc->s_fs_info);
}

static const struct fs_context_operations context_operations = {
	.free = free_context,
	.parse_param = parse,
	.get_tree = get_tree,
	.reconfigure = reconfigure,
};

static int init_context(struct fs_context *fc)
{
	struct access *access = kzalloc(sizeof(*access), GFP_KERNEL);

	if (!access)
		return -ENOMEM;
	access->gid = KGIDT_INIT(rtrace_gid());
	access->mode = rtrace_mode();
	access->programs = KGIDT_INIT(rtrace_programs());
	fc->s_fs_info = access;
	fc->ops = &context_operations;
	return 0;
}

static void kill_super(struct super_block *sb)
{
	struct access *access = sb->s_fs_info;

	/* The next mount waits until this superblock is gone. */
	tree_operations->forget(tree);
	kill_anon_super(sb);
	kfree(access);
}

/* No FS_USERNS_MOUNT: only root of the initial user namespace can mount it. */
static struct file_system_type type = {
	.owner = THIS_MODULE,
	.name = "rtrace",
	.init_fs_context = init_context,
	.parameters = parameters,
	.kill_sb = kill_super,
};

/* Bit of a file's mode: the group of programs may use it, whatever group and mode the other files have. */
#define OF_PROGRAMS S_ISGID

static void set_access(struct inode *inode, umode_t mode)
{
	umode_t limit = rtrace_mode();
	kgid_t gid = KGIDT_INIT(rtrace_gid());
	kgid_t programs = KGIDT_INIT(rtrace_programs());

	if (inode->i_sb->s_type == &type) {
		const struct access *access = inode->i_sb->s_fs_info;

		limit = READ_ONCE(access->mode);
		gid = READ_ONCE(access->gid);
		programs = READ_ONCE(access->programs);
		inode->i_uid = READ_ONCE(access->uid);
		/* Programs find their file by its name. All other entries of the root keep their own limit. */
		if (gid_valid(programs) && inode->i_sb->s_root && inode == d_inode(inode->i_sb->s_root))
			limit |= 0011;
	}
	if (mode & OF_PROGRAMS && gid_valid(programs)) {
		gid = programs;
		limit = 0660;
	}
	inode->i_gid = gid;
	WRITE_ONCE(inode->i_mode, S_ISDIR(inode->i_mode) ? S_IFDIR | limit : S_IFREG | (mode & 0777 & limit));
}

/*
 * Sets the owner and the mode of an entry, in this file system or in debugfs. A file gets those bits of `mode` that the
 * file system's mode has, a directory gets that mode.
 */
notrace void rtrace_set_access(struct dentry *entry, umode_t mode)
{
	set_access(d_inode(entry), mode);
}

/*
 * Creates a file, or without operations a directory, and returns its dentry, which lives until it is removed. The
 * caller keeps the superblock, and passes a reference to `file`, which the inode owns after a success.
 */
notrace struct dentry *rtrace_fs_create(struct dentry *parent, const char *name, umode_t mode, void *file,
					const struct file_operations *operations)
{
	struct dentry *dentry = simple_start_creating(parent, name);
	struct inode *inode;

	if (IS_ERR(dentry))
		return dentry;
	inode = new_dir(dentry->d_sb);
	if (!inode) {
		simple_done_creating(dentry);
		return ERR_PTR(-ENOMEM);
	}
	if (operations) {
		inode->i_mode = S_IFREG;
		inode->i_op = &file_operations;
		inode->i_fop = operations;
		inode->i_private = file;
		drop_nlink(inode);
	} else {
		inc_nlink(d_inode(parent));
	}
	set_access(inode, mode);
	d_make_persistent(dentry, inode);
	if (operations)
		fsnotify_create(d_inode(parent), dentry);
	else
		fsnotify_mkdir(d_inode(parent), dentry);
	simple_done_creating(dentry);
	return dentry;
}

/*
 * Waits until no reader of a directory of debugfs copies names. The creation of a file in it waits, too, but a signal
 * does not end that. Another reader may come in between.
 */
notrace int rtrace_dir_wait(struct dentry *dir)
{
	int err = down_write_killable(&d_inode(dir)->i_rwsem);

	if (!err)
		inode_unlock(d_inode(dir));
	return err;
}

/* Removes an entry, and all below it. Open files keep their inodes. */
notrace void rtrace_fs_remove(struct dentry *dentry)
{
	simple_recursive_removal(dentry, NULL);
}

/* Makes the file system and its mount point available. The module's initialisation must not fail after it. */
notrace int rtrace_fs_register(void *of, const struct rtrace_tree_operations *operations)
{
	int err = sysfs_create_mount_point(kernel_kobj, "rtrace");

	if (err)
		return err;
	tree = of;
	tree_operations = operations;
	err = register_filesystem(&type);
	if (err)
		sysfs_remove_mount_point(kernel_kobj, "rtrace");
	return err;
}

/* It is not mounted: a mounted one holds the module. */
notrace void rtrace_fs_unregister(void)
{
	unregister_filesystem(&type);
	sysfs_remove_mount_point(kernel_kobj, "rtrace");
}
