// Package verbs is the client of the kernel's RDMA interface: device discovery,
// contexts, protection domains, memory regions, completion queues and queue
// pairs, in pure Go.
//
// It is written once against kshim.Kernel, and does not know whether the real
// kernel (kshim/host) or the emulated one (kshim/emu) answers: it imports
// neither, and relies on Linux' behaviour. It offers no handles (uapi does),
// makes no connections (kshim/rdmacm) and prints nothing.
//
// How a command passes: a method checks its object and names the command's
// structures (kshim/abi), invoke puts them into pinned scratch memory, the
// command's own while it lasts, and gives them to RDMA_VERBS_IOCTL's
// INVOKE_WRITE. Commands run side by side, up to a bound.
// The kernel refuses write() from a thread whose credentials have changed, so
// write() is left to the two calls whose cost matters, the doorbell and the
// arming of a completion queue, with the ioctl behind them.
//
// How a work request passes: Post checks the queue pair's state and the room,
// encodes the request into the send queue (kshim/ring), publishes it and rings
// the doorbell. Poll takes the completion out of the completion queue's ring
// without a system call. Neither allocates.
//
// How a waiter sleeps: WaitAny looks at its queues, does the device's work
// itself if the kernel runs in this process and lets it, else enters itself in
// each queue, arms them, looks once more and sleeps until an event, a failure
// or Wake fills its channel.
//
// The package does the work that the kernel leaves to its client:
//
//   - rxe rounds a queue's depth up; here a queue is full at exactly the
//     requested depth.
//   - A completion with an error status carries only the work request's id. The
//     id in the ring is this package's own: direction, generation of the queue
//     pair and sequence number; the caller's id, the opcode and the room in the
//     queue come from there.
//   - Completions of a queue pair that was destroyed or reset are dropped:
//     their generation is gone.
//   - A failed doorbell would leave its request published, so the state is
//     checked before the index moves.
//   - Linux does not flush a receive posted in ERR. Such receives stay here and
//     are completed with WR_FLUSH_ERR, after those that the kernel has. The
//     client learns that a queue pair is in ERR from Modify, from its first
//     error completion, or from an asynchronous event. It asks the kernel when
//     receives were posted to an empty queue, of which no completion would have
//     told an error before, and Wait is about to block or Poll has found
//     nothing many times.
//   - A doorbell in ERR need not make Linux flush. The move to ERR is repeated
//     then, which does.
//   - Requests posted in SQD are not sent on the way back to RTS until a
//     doorbell rings, so it is rung then.
//   - A completion queue that overran says so in an asynchronous event: Poll
//     returns the error once the ring is empty.
//   - A handle that was freed is the next object's. No command names one:
//     destroying an object excludes the commands on it.
//
// Locks, outermost first: Context.ctl (shared by every control call, exclusive
// in Close), object.use, CQ.use in the order of their making, QP.modify, CQ.mu,
// and then the two work queues' mu, the sends' first; the lock of the free
// scratch memory is innermost. No lock is held while waiting for an event.
package verbs
