// Package stats is readings of RDMA devices' counters: their form, as JSON and as
// Prometheus text, and the socket over which the soft devices of one process are read
// by another of the same user. It opens no device and counts nothing: uapi makes
// readings (Context.Stats, AllStats), rdmashim top and stats show them.
//
// A reading goes so from process to process: a Server listens on a UNIX socket of its
// own in a directory that is the user's alone (dir.go); Processes finds the sockets
// there and ReadProcess connects, both ends look who the other is (peer_linux.go), the
// client sends a request, one line of JSON, and the server answers with an Answer, one
// line of JSON, and closes. ReadAll asks all processes at once and waits 200 ms for one
// that does not begin to answer. A Server that nobody asks is a goroutine that waits.
//
// The names of counters are the kernel driver's (rdma_rxe's, where it has them; names.go
// says what each means); Summarize adds up what belongs together.
package stats
