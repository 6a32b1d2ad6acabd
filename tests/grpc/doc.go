// Package grpctest runs well-known programs over RDMA as they are: grpc-go with
// its own interoperability suite, connect-go, and a Redis client and server.
// Their dialers and listeners are those of uapi/rdmanet, and nothing else is
// changed. The same suite runs on uapi/rpc, which has grpc-go's stubs and
// services but not its HTTP/2 (native_test.go). Prometheus' parser, too, reads
// here what package stats writes (prometheus_test.go).
//
// It is a module of its own, so that programs that import uapi need none of
// theirs in their list of modules; tools/test runs it after the rest:
//
//	cd tests/grpc && go test ./...
//
// It is no test of rdmanet alone: net.Conn, TLS and net/http are tested there.
//
// How a test goes: serve opens a listener on one device and a client on
// another (serve_test.go). Where time matters both are on an in-memory network,
// and time is virtual; where processes or sockets matter they are soft devices
// on loopback. Benchmarks compare with the same programs over TCP, by turns
// (bench_linux_test.go).
package grpctest
