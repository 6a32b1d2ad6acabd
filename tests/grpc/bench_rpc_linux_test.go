package grpctest

import (
	"context"
	"net"
	"os"
	"os/exec"
	"runtime"
	"testing"
)

// BenchmarkRPC compares uapi/rpc with grpc-go, ttrpc and dRPC: calls of 64 B by
// one caller, on a quiet machine and beside a process that spins on each
// processor, and by 64 callers; and a stream of messages of 1 MiB.
func BenchmarkRPC(b *testing.B) {
	servers := startServers(b, ownAddr())
	ours := servers.dialNative(b)
	tcp := servers.dial(b, servers.TCP, dialTCP)
	unix := servers.dial(b, servers.UNIX, dialUNIX)
	ttrpc, drpc := dialTTRPC(b, servers.TTRPC), dialDRPC(b, servers.DRPC)
	const (
		overTCP  = "grpc-go over TCP"
		overUNIX = "grpc-go over a UNIX socket"
		byTTRPC  = "ttrpc over a UNIX socket"
		byDRPC   = "a pool of dRPC over TCP"
	)
	one := func(name string, third, same bound) {
		compare(b, name+"/tcp", servers.side(unaryOf(ours).one), servers.side(unaryOf(tcp).one)).
			row(b, overTCP, third, p50).row(b, overTCP, third, p99).row(b, overTCP, atMost(0.5), cpu)
		compare(b, name+"/unix", servers.side(unaryOf(ours).one), servers.side(unaryOf(unix).one)).
			row(b, overUNIX, none, p50).row(b, overUNIX, none, p99).row(b, overUNIX, none, cpu)
		compare(b, name+"/ttrpc", servers.side(unaryOf(ours).one), servers.side(ttrpc.one)).
			row(b, byTTRPC, same, p50).row(b, byTTRPC, same, p99).row(b, byTTRPC, none, cpu)
	}
	one("Unary64B", atMost(0.333), atMost(1))
	stop := spin(b)
	one("Busy64B", atMost(0.333), atMost(1))
	stop()

	const callers = 64
	compare(b, "Callers64/tcp", servers.side(unaryOf(ours).by(callers)), servers.side(unaryOf(tcp).by(callers))).
		row(b, overTCP, atLeast(4), rate).row(b, overTCP, atMost(0.5), cpu)
	compare(b, "Callers64/drpc", servers.side(unaryOf(ours).by(callers)), servers.side(drpc.by(callers))).
		row(b, byDRPC, atLeast(1.5), rate).row(b, byDRPC, none, cpu)

	compare(b, "Stream1MiB", servers.side(streamOf(ours)), servers.side(streamOf(tcp))).
		row(b, overTCP, atLeast(2), megabytes).row(b, overTCP, none, cpu)
	compare(b, "RawStream1MiB/protobuf", servers.side(rawStreamOf(ours)), servers.side(streamOf(tcp))).
		row(b, overTCP+", protobuf", atLeast(2.8), megabytes).row(b, overTCP+", protobuf", none, cpu)
	compare(b, "RawStream1MiB/raw", servers.side(rawStreamOf(ours)), servers.side(rawStreamOf(tcp))).
		row(b, overTCP+", raw bytes", none, megabytes).row(b, overTCP+", raw bytes", none, cpu)
}

func dialUNIX(ctx context.Context, addr string) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, "unix", addr)
}

// spin has a process spin on each processor until stop.
func spin(b *testing.B) (stop func()) {
	var all []*exec.Cmd
	stop = func() {
		for _, p := range all {
			_ = p.Process.Kill()
			_ = p.Wait()
		}
		all = nil
	}
	b.Cleanup(stop)
	for range runtime.NumCPU() {
		p := exec.Command("/proc/self/exe")
		p.Env = append(os.Environ(), spinner+"=1", "GOMAXPROCS=1")
		if err := p.Start(); err != nil {
			b.Fatal(err)
		}
		all = append(all, p)
	}
	return stop
}
