// Package rdmacm is the client of the kernel's connection manager,
// /dev/infiniband/rdma_cm: it connects queue pairs by address and port,
// interoperably with programs that use librdmacm.
//
// It is written once against kshim.Kernel. Whether the real kernel answers
// (kshim/host) or the emulated one (kshim/emu) it does not know. The protocol
// is the kernel's (in the mini kernel rnic/cm); this package gives commands and
// receives events. It makes no queue pairs (kshim/verbs does), has no handles
// and keeps no connection alive (uapi does).
//
// # How a call flows
//
// A Channel is one open file. A command (command.go) is put into scratch
// memory, its answer's room is pinned, and it is written. Events come the other
// way: one goroutine per channel fetches them by GET_EVENT, waits in the
// netpoller when there are none (kshim.Waiter), and gives each to its id, which
// it finds by uid. A kernel in this process hands over all but the requests of
// peers itself (kshim.Pusher), so that a resolution ends without a change of
// goroutines. Waiting for an id, or for the end of its connection
// (ID.Context), costs no goroutine.
//
// # The active side
//
//	id   Resolve      RESOLVE_ADDR → ADDR_RESOLVED, RESOLVE_ROUTE → ROUTE_RESOLVED
//	     Device       which device to open, whose queue pair to make
//	     Init         INIT_QP_ATTR, queue pair to INIT; receives can be posted
//	     Connect      CONNECT → CONNECT_RESPONSE; INIT again, RTR, RTS; ACCEPT without a parameter
//	     Context      ends when the connection does
//	     Disconnect   DISCONNECT → DISCONNECTED → TIMEWAIT_EXIT
//	     Destroy
//
// # The passive side
//
//	l    Listen       BIND, LISTEN
//	req  l.Accept     CONNECT_REQUEST, with the new id; Peer is what the peer says
//	     req.Device, req.Init, and receives are posted
//	     req.Accept   RTR, RTS; ACCEPT → ESTABLISHED
//	     req.Reject   REJECT, instead
//	     Context, Disconnect, Destroy as above
//
// The owner of an ID or a Request destroys it, also after an error: that
// cancels its pending work and tells the peer. After a call whose context
// ended, the kernel goes on with the work until then.
//
// # What the interface leaves to its client, and where it is done
//
//   - An id's number may be 0, and is another id's once it is destroyed. Events
//     are matched by uid, which starts at 1 and is never used again; the kernel
//     drops the events of an id with uid 0, as a request has until ACCEPT gives
//     it one. So a peer's message to a request before it was accepted is lost:
//     Accept then finds the wrong state (ECONNABORTED).
//   - A listener's backlog is free again once the kernel's event was fetched,
//     which happens at once: Listen bounds the requests itself, and rejects the
//     rest.
//   - Requests that no Accept took must be destroyed one by one when their
//     listener goes, or they stay.
//   - The first INIT gives the peer no access: INIT_QP_ATTR knows of it only
//     after the peer's answer, so that the active side moves its queue pair to
//     INIT twice.
//   - RTR has the peer's wishes, not Accept's grants: responder resources and
//     initiator depth are corrected there. The RNR timer is always 0, which is
//     655.36 ms, unless ConnParam says otherwise.
//   - A disconnect request must be answered, or the peer waits: the channel's
//     goroutine does, or one of its own if the event was handed over.
//   - DESTROY_ID tells how many of an id's events were given, for clients that
//     still work on them. Here Destroy waits until the one that may have been
//     fetched is delivered.
//   - Private data comes as long as the message's room, with zeroes behind it.
//     Its length is not told.
//   - A REJECT carries two reasons only, CONSUMER_DEFINED and
//     VENDOR_OPTION_NOT_SUPPORTED.
//   - A file may be written to only with the credentials that opened it. A
//     thread that changed its own has its commands given by the one that opened
//     the file (kshim/host). A process that changed its own after Open gets
//     EACCES from everything: open the channel anew, or start the process as
//     its final user.
//
// # Times
//
// Linux 6.1 on RoCE resolves addresses within the given timeout (ETIMEDOUT), is
// refused within a round trip where no program listens, and gives a silent host
// up after 102 s (UNREACHABLE, ETIMEDOUT): 16 requests of 6.4 s each, which
// nothing shortens but the caller's context. TIMEWAIT_EXIT comes when the
// connection's packets must have died out, which is seconds with the default
// ACK timeout; destroying the id does not wait for it.
package rdmacm
