// Package notif is seccomp's user notification (seccomp_unotify(2)): a filter
// holds chosen system calls of a program, and another process answers them.
//
// The path of a call:
//
//  1. A child of the supervisor calls Exec: it installs Filter, sends the
//     listener over a socket, and becomes the program. Accept takes the
//     listener at the other end.
//  2. The program and all that it starts make system calls. Those of the
//     filter's table are held; Receive returns one after the other.
//  3. Each is answered once: by Value or Fail, or by Continue, which lets Linux
//     do the call. Add puts a descriptor into the program before.
//  4. Receive returns io.EOF when no program under the filter is left.
//
// Which calls are held is the table's (calls.go). It is the only thing here
// that has to do with RDMA: calls that name a path, commands of RDMA devices,
// and what is done to descriptors with numbers in a Window.
//
// Linux has it in steps, and Check tells what a machine allows:
//
//	5.9   ADDFD, and POLLHUP when the last program has ended
//	5.19  WAIT_KILLABLE_RECV: a received call is no longer interrupted by a
//	      signal; before, it returns EINTR or comes a second time
//	6.6   SYNC_WAKE_UP
//	6.11  RECV ends with the last program; Receive polls, and needs it not
//
// It is no sandbox: a program could change a path after the supervisor read it.
// 32-bit calls on a 64-bit kernel are never held.
package notif
