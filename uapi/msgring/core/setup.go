package core

// SetupStep is a step of making an end of a connection.
type SetupStep uint8

const (
	// Allocate makes the ring, the staging and the receives' memory, in a
	// protection domain of their own.
	Allocate SetupStep = iota
	// MakePair makes the queue pair.
	MakePair
	// Enter lets completions of the queue pair find the endpoint.
	Enter
	// PostReceives posts a receive for each quantum of the ring and each
	// control message.
	PostReceives
	// Connect answers the request, or makes it and waits for the answer. The
	// peer may send before it returns.
	Connect
	// Activate allows posting: End.Open.
	Activate
)

// Setup is the order of the steps, for both ends. The peer's first message can
// come as soon as Connect begins: its receive is posted, and its completion,
// which any goroutine that works for the completion queue may take, finds the
// endpoint. Only posting waits for the end of Connect. Steps that were done are
// undone in the reverse order.
var Setup = []SetupStep{Allocate, MakePair, Enter, PostReceives, Connect, Activate}
