// Package session makes calls that are executed at most once, whatever becomes
// of connections, and streams beside them, over message rings: a client, and a
// server with one handler for the calls of all methods and one for streams.
//
//	client, err := session.Dial(device, "10.0.0.2:7471", session.ClientConfig{})
//	err = client.Call(ctx, &session.Call{Method: "add", Body: b, Reply: take})
//
//	server, err := session.NewServer(session.ServerConfig{Unary: handle})
//	err = server.Serve(listener)
//
// It is not gRPC: methods are names, metadata and bodies are bytes. It has no
// interceptors, no authentication, and no other end than itself.
//
// # By task
//
//   - Call: [Dial], [Client.Call]; a stream: [Client.Open], [Stream]
//   - Serve: [NewServer], [Server.Serve]; stop: [Server.GracefulStop],
//     [Server.Stop]
//   - Send bytes: [Bytes]; a message that encodes itself: [Body]
//   - Use memory that devices reach, without a copy: [Memory], [Client.Memory],
//     [Request.Memory]
//   - Watch: [Client.Stats], [Server.Stats]; break connections in a test:
//     [Server.Cut]
//
// # At most once
//
// A session outlives its connections. When one breaks, the client makes another
// and repeats the calls whose answers it lacks; the server executes none twice,
// and sends the answer of one that it has executed. A call ends
//
//	with its answer      executed once
//	ErrUnavailable       not executed
//	ErrNotSent           not executed: its context or Close ended it before
//	ErrExecuted          executed once; the server no longer has the answer
//	ErrFateUnknown       executed once or not at all: the server has lost the session
//	with its context     executed once or not at all: its caller has left
//
// Streams are not repeated: they end with ErrBroken.
//
// # Strangers
//
// A client can make a server hold what its bounds allow, and leaves room for
// others: an address (in IPv6 a network of 2^64) is given more sessions,
// handlers, or memory of bodies while it has no more than is then left. So one
// address has half at most, and n that take all they can leave 1/(n+1). A
// session is given a handler while it has at most half of what is left: a third
// in all. Beyond its part its calls wait, their bodies are not READ, and its
// handlers wait to send theirs.
//
// A session begins when its connection stands. One whose client is away ends
// after Lifetime, whatever runs, and before that, the longest away first, when
// its address asks for another one and has its share.
//
// # How a call flows
//
//  1. Call has the body appended to memory of the session, queues the caller,
//     and wakes the connection's writer; without a connection, one is made.
//  2. The writer gives the call a slot and sends its REQUEST. A body of up to
//     32 KiB is part of it; a longer one is offered, and the server READs it.
//  3. The server's reader copies the message out of the ring, and a goroutine
//     runs the handler. Its answer passes to the connection's writer, and stays
//     in the slot until the slot's next call.
//  4. The client's reader copies the REPLY out, or has its body READ, and wakes
//     the caller.
//  5. A caller whose context ends leaves at once: a call that was posted is
//     cancelled at the server, and its slot returns with the server's answer.
//
// Package core has the slots and their meaning, package wire the messages.
package session
