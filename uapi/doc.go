// Package uapi is RDMA for Go programs, on any machine: memory regions, queue
// pairs and completion queues as plain integer handles, in pure Go, with or
// without an RDMA card, kernel module or privilege.
//
// # By task
//
//   - Open a device: [Open]; by an address [OpenLocal], by the way
//     to a peer [OpenRoute]; see what there is: [Devices], [Device.QueryDevice]
//   - Register memory: [Device.RegMR], [Device.RegRegion]; page-aligned memory
//     outside of Go's heap: [Alloc]
//   - Connect by address: [Device.Dial], [Device.Listen]; over a TCP
//     connection: [Device.ConnectOver]; by hand: [Device.LocalEndpoint],
//     [Device.ConnectQP]
//   - Write and read the peer's memory: [Device.Write], [Device.WriteImm],
//     [Device.Read], [Device.FetchAdd], [Device.CompareSwap]; a part of it:
//     [Region.Slice]; by address and key: [Device.PostWrite],
//     [Device.PostRead]
//   - Exchange messages: [Device.PostSend], [Device.PostRecv]; receives for
//     many connections: [Device.CreateSRQ], [Device.PostSRQRecv]
//   - Post several requests, scatter lists, bytes of any memory (WR.Data):
//     [Device.Post]
//   - Send datagrams: [Device.CreateAH], [Device.PostSendTo]; to groups:
//     [Device.AttachMulticast]
//   - Wait for a request: [Device.WaitWR]; for whatever completes on a queue
//     pair: [Device.WaitCQ], without waiting [Device.PollCQ]; in a completion
//     queue of several queue pairs: [Device.WaitQueue], [Device.PollQueue]; in
//     several of them: [Device.WaitAny]; in a loop: [Device.Completions]
//   - Know that a peer has gone: [Device.Done], [Device.OnDone],
//     [Device.Cause]; what a device says: [Device.Events]
//   - Keep peers apart: [Device.CreatePD]; lend memory for one request:
//     [Device.CreateMW], [Device.NextRegion]
//   - Watch: [Device.Stats], [AllStats], [StatsVar]; in a test, find handles
//     that are left: [Device.OpenHandles]
//   - Test: package uapitest has two connected devices in a line
//
// Above it stand packages rdmanet (net.Conn), msgring (messages), qmux
// (streams), registration (streams over a transport of choice) and rpc (gRPC's
// stubs).
//
// # The calls
//
// Seven calls are those of the API's founding document (user/rdma.h), in Go
// case, with the same parameters in the same order:
//
//	RegMR, DeregMR, CreateQP, DestroyQP, PostWrite, PostSend, PollCQ
//
// They are methods of a Device, which Open makes. Around them stand the calls
// that every program needs: LocalEndpoint and ConnectQP (ConnectOver does both
// over TCP), QueryMR, PostRecv, PostRead, WaitCQ, Alloc and Close. These and
// the seven are also functions on a default device, which the first use opens
// with the device that RDMASHIM_DEVICE names, else "soft"; Default returns it
// for all other calls. Under them lies a general layer of which they are thin
// wrappers: CreateCQ, CreateQPWith, Post, PollQueue and WaitQueue, with
// completion queues shared by many queue pairs, scatter lists, flags, inline
// data and the caller's own 64-bit ids. PollCQ and WaitCQ name a queue pair, as
// in the document; PollQueue and WaitQueue name a completion queue.
//
// A number that a call returns beside an error is -1, as in the document: a
// handle, an id, or a count of completions. Only Post differs: it returns how
// many requests were posted before the one that its error is of. Go's error, an
// *OpError, says which call failed, on what, and why.
//
// A call that can be configured takes a struct whose zero value is the default:
// Open, Listen, Dial, CreateAH. Of two calls the document has a short form, and
// so each has another with a struct, by the name with With: RegMR and
// RegMRWith, CreateQP and CreateQPWith. A field that is zero means its default,
// and None, where it is permitted, means nothing at all. A device's own options
// are part of its name, "soft:10.0.0.1?mtu=1024", so that a flag or
// RDMASHIM_DEVICE can say them.
//
// Queue pairs of TypeUC are connected by ConnectQP, and lost messages stay
// lost: see TypeUC.
//
// Queue pairs of TypeUD send datagrams, each to the address that it names:
// PostSendTo, CreateAH.
//
// It is not a byte stream: it moves messages and memory between queue pairs.
//
// # Places
//
// A post names memory of the program's own by an SGE, a piece of a registered
// region, and the peer's by a Region, which the peer tells (RegRegion; private
// data, ConnectOver). Both are checked before anything is sent:
//
//	there, err := page.Slice(4096, 12) // of the peer's page
//	id, err := d.Write(qp, uapi.SGE{MR: mr, Length: 12}, there)
//
// PostWrite and PostRead take the peer's address, key and length one by one;
// only the peer checks them. Data of at most QPConfig.Inline bytes need no
// region: WR.Data.
//
// # Connecting
//
// Dial and Listen connect queue pairs by address and port, through the kernel's
// RDMA connection manager and interoperably with librdmacm:
//
//	l, err := d.Listen(":7471", uapi.ListenConfig{})
//	r, err := l.Accept(ctx)      // r.RemoteAddr, r.PrivateData
//	qp, err := r.CreateQPWith(conf) // post receives
//	_, err = r.Accept(ctx, data) // or r.Reject(reason, data)
//
//	qp, err := d.Dial(ctx, "10.0.0.2:7471", uapi.DialConfig{Private: data})
//	info, err := d.QueryConn(qp) // the peer's private data
//	<-d.Done(qp)                 // d.Cause(qp) says why; OnDone calls a function
//
// RegRegion registers memory and returns the Region that the peer must be told
// of, whose binary form fits into private data.
//
// A peer's private data comes with zeroes behind it, as long as the message's
// room: private data has no length on the wire. An idle connection's peer is
// asked for a sign of life after DefaultKeepAlive, so that its death is noticed
// within 12.5 s, of any cause and although the program does not poll: twice the
// interval, seven timeouts and a quarter. OpenRoute opens the device from which
// an address is reached, OpenLocal that of an address. Processes of one user
// listen on different ports of one address, and a client does not take the
// address that it dials.
//
// Programs that have a channel of their own exchange endpoints instead:
// LocalEndpoint and ConnectQP.
//
// # Events
//
// Events gives a device's news of itself: its port went down or came up, its
// GID table changed, a queue pair or a completion queue broke.
//
//	for e := range d.Events(ctx) {
//		log.Print(e.Type, e.Port, e.QP)
//	}
//
// # Protection domains
//
// A peer reaches each region that is in its queue pair's protection domain,
// allows it, and whose key the peer knows. Everything is in the device's own
// domain unless said otherwise, so peers of one device share its regions: a
// key that one of them was told, or guesses, serves all. A server gives each
// client a domain:
//
//	pd, err := d.CreatePD()
//	mr, err := d.RegMRWith(page, uapi.MRConfig{Access: access, PD: pd})
//	qp, err := r.CreateQPWith(uapi.QPConfig{PD: pd}) // r of Listener.Accept
//
// and ends with DestroyQP, DeregMR and DestroyPD. Memory that a peer is to
// reach for one request only stays closed, and a window lends it: CreateMW.
//
// # Shared receives
//
// A server of many connections posts its receives once for all of them: its
// pinned memory grows with the messages that wait for it, and not with its
// clients.
//
//	srq, err := d.CreateSRQ(uapi.SRQConfig{Depth: 256, Limit: 64})
//	id, err := d.PostSRQRecv(srq, mr, 0, 4096)
//	qp, err := r.CreateQPWith(uapi.QPConfig{SRQ: srq, SendDepth: 8, RecvCQ: cq})
//
// WC.QP says whose message a completion in cq is. Clients that send faster than
// receives are posted wait (QPConfig.RNRRetry), and Events tells when fewer
// than the limit are left.
//
// # How a write goes
//
// Write resolves the handles, checks the bounds, and puts a work request into a
// ring of shared memory; a doorbell, the only system call, tells the kernel.
// The kernel is either emulated in the process, with a soft RNIC that speaks
// RoCEv2 over UDP, or the real one. It cuts the data into packets, the peer's
// device checks key and bounds and places them, and an acknowledgement makes a
// completion in another ring. PollCQ takes it from there without a system call;
// WaitCQ sleeps until it is there.
//
// # The founding document's example
//
// The document's complete example writes to address 0x80000000 with key 12345
// on a queue pair that it never connects. No program registered that memory, so
// it cannot succeed. Here its outcome is:
//
//   - not connected: PostWrite returns -1 and an error that Is EINVAL and says
//     to call ConnectQP first, and so does PollCQ;
//   - connected, also to itself: the completion's status is WCRemAccessErr.
//
// Its polling loop, which spins while the result is 0, ends on an error too,
// because that is -1. The completion that it looks at then, wc[0], is no
// success: it has WCGeneralErr.
//
// # Completions
//
// A mistake that can be seen at the call is an error of the call, and then
// nothing was posted. A mistake that only the device or the peer can see is a
// completion's Status. A queue is full when exactly as many requests are
// outstanding as it was made for, whatever the device rounds that to: ENOMEM. A
// request is outstanding until its completion was polled; an unsignaled one
// until that of a later signaled one was. After the first failed request the
// queue pair is in the error state, and everything outstanding completes, in
// order, with WCWRFlushErr. A queue pair that is connected to itself is both
// sides at once, and its requests have the status that any peer's refusal gives
// them.
//
// # Waiting
//
// WaitWR waits for one request, WaitCQ and WaitQueue for whatever completes,
// WaitAny for several completion queues. WakeCQ has a wait return 0
// completions, for a program whose waiter must look at something else: a
// deadline, a message that is to be sent. A post of a receive never waits for a
// send, nor for its doorbell.
//
// # Watching
//
// Device.Stats reads a device's counters, and those of its queue pairs with
// window and round trip; AllStats reads every device of the process, and
// StatsVar is that for package expvar. Other processes of the same user read
// soft devices through a socket (package stats, rdmashim top), unless they were
// opened with stats=off.
//
// # Defaults
//
// ConnectQP uses, unless QPConfig says otherwise: timeout 268 ms, retry 6, so
// that a dead peer is noticed, with WCRetryExcErr, after about 1.9 s; RNR retry
// 7, which is for ever: a send waits until the peer posts a receive; RNR timer
// 0.64 ms; 16 READs and atomics at a time in each direction; the
// smaller one of the two ports' MTUs. QueryQP tells what is in force. Port, GID
// and MTU of the device are chosen as QueryDevice explains (the first active
// port; RoCE v2 IPv4 before global IPv6 before link-local), and OpenConfig
// overrides it.
//
// # Memory
//
// A registered slice is pinned until it is deregistered. From a post until its
// completion the buffer belongs to the device: a send's must not change, a
// receive's must not be read. After the completion both are safe to use, also
// in the eyes of the race detector. A region that a peer may write to at any
// time is read with Uint64At or Uint32At.
//
// # Handles and concurrency
//
// Everything is safe for concurrent use; ordering is per queue pair. Handles
// that are zero, stale, of another device or of a closed one answer EBADF,
// never anything else's object. A Device's objects go with its Close, and a
// process's with its end.
package uapi
