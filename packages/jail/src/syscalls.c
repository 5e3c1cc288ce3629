#define _GNU_SOURCE
#include "syscalls.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "report.h"

#define X32 0x40000000u /* the same kernel, other numbers */

/* Namespaces, mounts, other processes, the kernel itself, its keys, its clock, and what watches or programs it. */
static const int refused[] = {
    SYS_unshare, SYS_setns, SYS_mount, SYS_umount2, SYS_pivot_root, SYS_chroot, SYS_open_tree, SYS_move_mount,
    SYS_fsopen, SYS_fsconfig, SYS_fsmount, SYS_fspick, SYS_mount_setattr, SYS_open_by_handle_at, SYS_name_to_handle_at,
    SYS_ptrace, SYS_process_vm_readv, SYS_process_vm_writev, SYS_pidfd_open, SYS_pidfd_getfd, SYS_kcmp,
    SYS_process_madvise, SYS_migrate_pages, SYS_move_pages, SYS_init_module, SYS_finit_module, SYS_delete_module,
    SYS_kexec_load, SYS_kexec_file_load, SYS_reboot, SYS_syslog, SYS_swapon, SYS_swapoff, SYS_quotactl, SYS_acct,
    SYS_add_key, SYS_request_key, SYS_keyctl, SYS_settimeofday, SYS_clock_settime, SYS_clock_adjtime, SYS_adjtimex,
    SYS_bpf, SYS_perf_event_open, SYS_userfaultfd, SYS_fanotify_init, SYS_iopl, SYS_ioperm, SYS_vhangup, SYS_personality,
};
#define REFUSED (sizeof refused / sizeof *refused)
#define NAMESPACES (CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET)

/*
 * What would get around the rest of this filter: the kernel makes the calls in the queue itself. QEMU does without, and
 * libraries expect that a kernel does not have it.
 */
static const int absent[] = {SYS_io_uring_setup, SYS_io_uring_enter, SYS_io_uring_register, SYS_clone3};
#define ABSENT (sizeof absent / sizeof *absent)

/* How space in files may be changed: what QEMU does, and nothing that takes space beyond a file's end. */
static const int allocations[] = {0, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, FALLOC_FL_ZERO_RANGE};
#define ALLOCATIONS (sizeof allocations / sizeof *allocations)

/* What a socket may be of: this host's processes, or the internet. Others have no namespace, or change the network. */
static const int families[] = {AF_UNIX, AF_INET, AF_INET6};
#define FAMILIES (sizeof families / sizeof *families)

#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offsetof(struct seccomp_data, field))
#define ANSWER(with) BPF_STMT(BPF_RET | BPF_K, (with))
#define REFUSE(error) ANSWER(SECCOMP_RET_ERRNO | ((error)&SECCOMP_RET_DATA))
#define IF_NOT_SKIP(value, count) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(value), 0, (count))
#define IF_SKIP(value, count) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(value), (count), 0)

void syscalls_refuse(void) {
  static struct sock_filter filter[32 + 2 * REFUSED + 2 * ABSENT + ALLOCATIONS + FAMILIES];
  size_t count = 0;
#define ADD(...) filter[count++] = (struct sock_filter)__VA_ARGS__
  ADD(LOAD(arch));
  ADD(IF_SKIP(AUDIT_ARCH_X86_64, 1));
  ADD(REFUSE(EPERM));
  ADD(LOAD(nr));
  ADD(BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, X32, 0, 1));
  ADD(REFUSE(EPERM));
  for (size_t at = 0; at < REFUSED; at++) {
    ADD(IF_NOT_SKIP(refused[at], 1));
    ADD(REFUSE(EPERM));
  }
  /* Among them clone3, whose flags are in memory, where a filter cannot look: libraries use clone instead. */
  for (size_t at = 0; at < ABSENT; at++) {
    ADD(IF_NOT_SKIP(absent[at], 1));
    ADD(REFUSE(ENOSYS));
  }
  ADD(IF_NOT_SKIP(SYS_clone, 3));
  ADD(LOAD(args[0]));
  ADD(BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, NAMESPACES, 0, 1));
  ADD(REFUSE(EPERM));
  /* After clone, the accumulator has its flags, which are no call of ours: load the number again. */
  ADD(LOAD(nr));
  /* The owner of a file may take a lease, for which the platform would have to wait when it opens the file. */
  ADD(IF_NOT_SKIP(SYS_fcntl, 4));
  ADD(LOAD(args[1]));
  ADD(IF_NOT_SKIP(F_SETLEASE, 1));
  ADD(REFUSE(EPERM));
  ADD(LOAD(nr));
  ADD(IF_NOT_SKIP(SYS_fallocate, (uint8_t)(ALLOCATIONS + 2)));
  ADD(LOAD(args[1]));
  for (size_t at = 0; at < ALLOCATIONS; at++) ADD(IF_SKIP(allocations[at], (uint8_t)(ALLOCATIONS - at)));
  ADD(REFUSE(EOPNOTSUPP));
  ADD(LOAD(nr));
  ADD(IF_NOT_SKIP(SYS_socket, (uint8_t)(FAMILIES + 2)));
  ADD(LOAD(args[0]));
  for (size_t at = 0; at < FAMILIES; at++) ADD(IF_SKIP(families[at], (uint8_t)(FAMILIES - at)));
  ADD(REFUSE(EAFNOSUPPORT));
  ADD(ANSWER(SECCOMP_RET_ALLOW));
#undef ADD
  struct sock_fprog program = {.len = (unsigned short)count, .filter = filter};
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) < 0) fail("refusing system calls", NULL);
}
