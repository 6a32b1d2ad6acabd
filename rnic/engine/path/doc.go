// Package path controls how many bytes are in flight to a peer, and at which
// pace they leave. It knows no queue pair, packet or clock: time is an
// argument, and numbers of packets are any that grow.
//
//	Set         the paths of a device to its peers, by address
//	Flow        a sender's place on a path, which it shares with others
//	Controller  decides for one path; Swift is the one in use
//
// The flows of a path pass the same queues and end in one socket's buffer, so a
// window for each flow would overflow these when there are many. A flow tells
// its path what it sends, what was acknowledged and what was lost; the path
// tells its controller, and divides what that allows (Flow.Room).
package path
