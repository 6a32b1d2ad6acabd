// Package wire is the format of the messages of RPC sessions: a header of 24
// bytes, and behind it a method's name, metadata, a status and a body.
//
// It is not the protocol: it knows no order of messages, keeps nothing and
// allocates nothing. Order and meaning are uapi/rpc/session/core's.
//
// A message flows: the sender fills a [Message], asks [Message.Check] and
// [Message.Length], and appends it ([Message.Append]). Messages, one behind the
// other, are a chunk of a message ring. The receiver parses the chunk where it
// lies ([Message.Parse]): a message's slices point into it, and whatever a peer
// writes is either messages that Append gives back byte for byte or a [Breach].
package wire
