// Package far reaches the memory of another process: a program whose system
// calls a mini kernel answers from outside. Memory implements driver.Far, and
// reads the paths and commands that system calls point at.
//
// It is an open file, /proc/PID/mem: a capability, for which Linux asks for the
// right to trace the process when it is opened (ptrace(2), "Ptrace access mode
// checking"), and no more. So the program's ancestor can open it and send it to
// a process that may not. It belongs to the address space, not to the number:
// when the program executes another one, or ends, it is dead, also if the
// number is given away again. What is asked of the mappings is asked of
// /proc/PID/maps, which is bound like it.
//
// process_vm_readv and process_vm_writev are not used. They name a process by
// its number, and a pidfd only tells of the process before or after the call:
// what they write in between can hit the program that was executed, or another
// process. They copy once, where these files copy twice: packets of 60 KiB take
// 9 µs of processor time by them and 15 by these files, 4 KiB 2.3 µs and 1.9
// (Linux 6.18). ib_write_bw of 1 MiB with two kernels had 1.25 of its bandwidth
// by them (tried). It would be safe where the number cannot change its owner
// during a copy: the copier is the parent and has not waited for the process,
// and lets no execve go on meanwhile.
//
// Copies pass over the protection of pages, as a card does that has pinned
// them (proc_pid_mem(5)): Probe tells what the program itself could do. They
// wait while Linux brings a page in, so as long as a file system takes whose
// file is mapped there.
//
// A call flows: rnic/mem copies packets by Read and Write, kshim/emu asks by
// Probe what a new region may be, and kshim/supervise reads commands and paths.
// A copy is a pread or pwrite at the address, which Linux does page after page,
// to the first one that is missing.
package far
