// Package core is the slot machine of RPC sessions without I/O: calls that are
// executed at most once, whatever becomes of connections, and streams with flow
// control beside them.
//
// It is not an endpoint: it has no goroutine, clock, lock, connection or
// registered memory. Time is an argument, messages are values, and the caller
// serialises all calls to a [Client], and all to a [Server] and its sessions.
//
// # Slots
//
// A session has slots, as NFSv4.1's do (RFC 8881 §2.10.6); a call is a slot and
// a sequence. The client uses a slot's next sequence only after the last one
// was answered, so the next request acknowledges the last reply, and the server
// keeps one reply a slot. The server executes the sequence above its last,
// answers the last one again, and ends the session at any other.
//
//	idle(n) ── REQUEST n+1 ──► running(n+1) ── Finish ──► replied(n+1)
//	   ▲ └── offered body ─► fetching(n+1) ─ Fetched ─► running(n+1)
//	   └──── connection ends ────┘
//
// After a break the client repeats the calls whose callers still wait, and
// sends VOID for the others, so that only the server's answer frees a slot. A
// server that does not know the session makes a new one; calls that were posted
// then end EndedUnknown: their fate cannot be known.
//
// # The way of a call
//
//  1. Begin gives the caller a slot; Request the head of the message, when the
//     connection has room for it.
//  2. The server's Receive says Execute. With an offered body it says Fetch
//     first; after the READ, Fetched says Execute.
//  3. Finish keeps the handler's reply, and Next hands it out to be posted.
//  4. The client's Receive, or Fetched if the reply is offered, says Answered.
//  5. A caller that leaves earlier calls Abandon; Next then hands out a CANCEL,
//     and the slot returns with the answer.
//
// Streams take a slot in the same way: Open in place of Execute, Data and
// StreamMessage in between, StreamEnded in place of Answered.
//
// # Connections
//
// The client raises the epoch with each Attempt. The server's Admit answers
// epochs above the session's and those of other attempts. When the connection
// stands, the older queue pair is destroyed and Disconnected is called for it,
// and then Connect makes the session, or has it go on; of several attempts only
// the newest may stand, since its client has given the others up. Messages of
// any other epoch are dropped.
package core
