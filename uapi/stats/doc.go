// Package stats holds the readings of RDMA devices' counters: their form, as
// JSON and as Prometheus text, and the socket over which a process reads the
// soft devices of another process of the same user. It opens no device and
// counts nothing: uapi makes readings (Device.Stats, AllStats), rdmashim top
// and stats show them.
//
// A Server listens on a UNIX socket of its own in a directory that is the
// user's alone (dir.go). ReadAll connects to all sockets there at once
// (client.go); both ends check the other's user, the server writes one line of
// JSON and closes. A process that does not begin within 200 ms is passed over
// and named. A Server without clients is a goroutine that waits.
//
// The names of counters are the kernel driver's (rdma_rxe's, where it has them;
// names.go says what each means); Summarize adds up counters that belong
// together.
package stats
