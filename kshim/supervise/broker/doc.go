// Package broker runs a program whose system calls a kernel of ours answers
// (package notif), as if the command were the program.
//
// Run executes this program once more, twice, with the same arguments, and each
// process comes to Run again:
//
//	command   the process that the user started: passes signals on, ends as the
//	  │       program did, and takes over when the keeper is killed
//	keeper    parent of the program: has the kernel, or the connection to a
//	  │       server, opens /proc/PID/mem, takes over when the kernel ends
//	program   installs the filter and executes the program's file
//
// A shell user sees this:
//
//   - The three are in one process group, so that the terminal's signals reach
//     the program by themselves. A signal sent to the command alone is sent on.
//     The two are told apart by the keeper: one that has come to it, too, was
//     sent to the group. On a busy machine one in thousands is sent on as well.
//   - When the program stops, the keeper stops the command, and continues it
//     when the program is continued.
//   - The command ends when the program ends. If processes that the program has
//     left live on, the keeper stays behind, silent, and serves them until the
//     last one has ended. Otherwise the kernel ends before the command does.
//   - A command that is killed kills the program, not what the program started.
//   - The program has the open descriptors of the command, also above 2. Command
//     and keeper close theirs, so that a pipe ends when the program closes it.
//
// When a kernel ends before the programs, by an error, a panic or a signal, the
// keeper or the command answers in its place: EIO to commands on descriptors
// that are ours, ENODEV to opens below /dev/infiniband, also to those that the
// kernel held. All other calls continue, and so does a call that the kernel
// received in its last instant, of which nothing is known. Only when command
// and keeper are killed at once does no process answer, and each held call,
// also the open of any file, fails with ENOSYS.
//
// A server gets the listener, and then the memory of the processes below the
// keeper, of no others, as it asks for it by their PIDs: Attach is its side. So
// the server needs no right to trace the program (Yama, PID namespaces).
//
// It finds no devices and answers no command: that is the kernel's.
package broker
