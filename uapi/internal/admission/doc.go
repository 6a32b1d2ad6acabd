// Package admission decides which of the connection requests that come to a
// listener its program may accept, and when, so that requests from made-up
// addresses neither fill the program nor keep honest hosts out.
//
// It knows addresses and times, and nothing of messages or queue pairs: uapi
// puts each request in (Put), gives it to Accept (Take), says when the peer was
// answered (Replied) and when the request has ended (Done).
package admission
