// Package emu is a Linux RDMA kernel in miniature, in the process: it answers
// the uverbs ABI (system calls on /dev/infiniband/uverbsN and the attributes
// below /sys/class/infiniband) for devices that are registered with it, so that
// a verbs client finds the answers of Linux where there is no Linux.
//
// It is the RDMA core, not a device: it knows commands, handles, files and
// events, and calls a driver.Device for everything that needs one. It is not a
// general kernel either: it has no scheduler, no paths but those named here,
// and memory only as far as a client announces it.
//
// A Machine holds the devices. A Process, which implements kshim.Kernel, holds
// a table of open files and the memory that was announced with Pin. A call
// passes three layers:
//
//  1. fetch: the header is checked, the request is copied in, the buffers for
//     the response are looked up among the announced memory (fetch.go,
//     ioctl.go). The form of a command is data, abi.Schema; its handler stands
//     in command.go, method.go or ucm.go.
//  2. resolve: handles become objects, descriptors become files; masks, states
//     and counts are checked (object.go, qpstate.go).
//  3. do it: the driver is called, then the response is copied out.
//
// The doorbell (POST_SEND) takes the same path, without allocation and without
// a lock that two queue pairs share. Events go the other way: the device calls
// CQEvents and QPEvents, and a reader of the event file wakes, or the client is
// called (kshim.Pusher, event.go). When a file closes, everything it owns is
// destroyed once, users before what they need: the order of the kinds in
// object.go.
//
// Drivers come as modules (module.go): Install, then Insmod, whose Init
// registers devices. ib_uverbs is one too, and there from the start; without it
// devices have no files. An open file holds ib_uverbs and its device's driver.
// A device can be taken away under its users all the same (Unregister): they
// get DEVICE_FATAL, and can still destroy and close. Kill ends a process at any
// point: the gate between commands and user memory is shut first (gate.go),
// then objects are destroyed as far as no command holds one, and by the command
// otherwise (kill.go).
//
// Error numbers are those of Linux 6.1 with rdma_rxe, from its sources or
// measured. Intended differences:
//
//   - A handle carries a generation, so a stale one is ENOENT and never another
//     object.
//   - A destroy waits for commands on the same object instead of failing with
//     EBUSY.
//   - Memory that was not announced is EFAULT, also where it exists.
//   - A module in use is EBUSY. delete_module says EAGAIN, as for something
//     that one could wait for.
//   - After DEVICE_FATAL and the events that waited, asynchronous files answer
//     EIO. On Linux they block, as the program knows that nothing follows
//     (uverbs_std_types_async_fd.c).
//   - Memory is not locked, so RLIMIT_MEMLOCK does not count.
//   - An event queue without a reader keeps 65,536 runs of events of one
//     source; beyond that events of the same source join, and their order is
//     lost.
//   - A full table is ENOMEM. rxe says so of regions only, and of all else
//     EINVAL (rxe_pool.c: __rxe_add_to_pool), which looks like a mistake in the
//     request.
//   - REREG_MR works. rxe of Linux 6.1 has no rereg_user_mr, so that the
//     command is EOPNOTSUPP; later ones change access and domain, not the
//     memory.
//   - ATTACH_MCAST joins the IP group on the device's interface. rxe sets the
//     interface's filter only: IP packets come when another program, or
//     rdma_cm, has joined (rxe_mcast.c: rxe_mcast_add).
//   - DESTROY_CQ wants its whole request. Linux takes 8 bytes less from write
//     and reads on behind them, for rdma-core 18 and 19 (uverbs_main.c:
//     verify_hdr).
//   - An empty region is EINVAL. Linux takes one that does not begin at a
//     page's start, because its page counts (ib_umem_num_pages).
//   - max_dest_rd_atomic above the device's limit is EINVAL. rxe takes it, and
//     in rounding it up to a power of two loses it: 129 becomes 0 (rxe_qp.c:
//     rxe_qp_from_attr). Smaller numbers are answered as they were given; rxe
//     answers them rounded up.
//   - A path MTU of 0 or beyond the port's active one, and retry counts beyond
//     their 3 bits, are EINVAL (these by the soft RNIC). rxe takes all of them
//     (rxe_qp.c: rxe_qp_chk_attr).
//   - Work requests within POST_SEND are EINVAL. Linux takes them and rxe
//     forgets them, as it looks at the ring only (rxe_verbs.c: rxe_post_send):
//     a client that sends them loses them.
package emu
