// Package session makes calls that are executed at most once, over message
// rings: a client, and a server with one handler for all methods.
//
//	client, err := session.Dial(device, "10.0.0.2:7471", session.ClientConfig{})
//	err = client.Call(ctx, &session.Call{Method: "add", Body: b, Reply: take})
//
//	server, err := session.NewServer(session.ServerConfig{Unary: handle})
//	err = server.Serve(listener)
//
// It is not gRPC: methods are names, metadata and bodies are bytes. It has no
// streams, and no bodies that the peer READs: a message fits into a quarter of
// either ring. A session ends with its connection: calls that were posted then
// end with ErrFateUnknown, and are not repeated.
//
// # How a call flows
//
//  1. Call queues the caller, and wakes the client's writer, which connects if
//     no connection stands.
//  2. The writer gives the call a slot and sends its REQUEST.
//  3. The server's reader copies the message out of the ring, and a goroutine
//     runs the handler. Its reply passes to the connection's writer.
//  4. The client's reader copies the REPLY out and wakes the caller.
//  5. A caller whose context ends leaves at once: a call that was posted is
//     cancelled at the server, and its slot returns with the server's answer.
//
// Package core has the slots and their meaning, package wire the messages.
package session
