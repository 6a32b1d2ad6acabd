package suite

import (
	"context"
	"fmt"
	"net"
	"os"

	"github.com/rdmashim/rdmashim/tools/internal/cli"
	"github.com/rdmashim/rdmashim/tools/lab/netpath"
	"github.com/rdmashim/rdmashim/tools/rdmashim/perf"
)

// shmDir is the environment variable by which devices are told of a directory.
const shmDir = "RDMASHIM_SHM_DIR"

// directoryTarget is the ratio of the goodput through a shared directory to
// that over the veth that is aimed at.
const directoryTarget = 8

// directoryTable lists WRITEs between processes of two network namespaces, as
// those of containers are, that share a directory.
func (s *suite) directoryTable() []comparison {
	const work = "WRITE 1 MiB between namespaces, shared directory"
	veth := path{straight: true}
	by := func(name, way string) *series {
		return pick(name, s.onPath(veth, func(ctx context.Context, n *network) (figures, error) {
			return s.acrossDirectory(ctx, n, way)
		}), rate(megabyte))
	}
	tcp := pick("Go TCP over the veth", s.onPath(veth, func(ctx context.Context, n *network) (figures, error) {
		return tcpOn(ctx, n, mebibyte, s.turn)
	}), rate(megabyte))
	ours := by(work, "shm")
	return []comparison{
		{work, "MB/s", ours, by("the same over the veth", "net"), directoryTarget, false},
		{work, "MB/s", ours, tcp, none, false},
	}
}

// acrossDirectory runs WRITEs of 1 MiB from a process in one namespace to one
// in the other, by a way of peer.Way.
func (s *suite) acrossDirectory(ctx context.Context, n *network, way string) (f figures, err error) {
	dir, err := os.MkdirTemp("", "shm")
	if err != nil {
		return f, err
	}
	defer os.RemoveAll(dir)
	if err = os.Setenv(shmDir, dir); err != nil {
		return f, err
	}
	defer os.Unsetenv(shmDir)
	device := func(e *netpath.End) string {
		return "soft:" + e.Addr4.String() + "?shm=" + map[string]string{"shm": "on", "net": "off"}[way]
	}
	var server *cli.Child
	err = n.B.Do(func() (err error) {
		server, err = cli.StartProcess(ctx, s.stderr, []string{"perf", "server", "--once", "--with-stdin", "--idle", "0",
			"--listen", net.JoinHostPort(n.B.Addr4.String(), "0"), "--device", device(n.B)})
		return err
	})
	if err != nil {
		return f, err
	}
	defer server.Stop()
	var r perf.Report
	err = n.A.Do(func() (err error) {
		r, err = s.send(ctx, fmt.Sprintf("write bw -s %d -t %d", mebibyte, vethFlying), device(n.A), server.Addr)
		return err
	})
	if err != nil {
		return f, err
	}
	if r.Way != way {
		return f, fmt.Errorf("the way is %q, not %q", r.Way, way)
	}
	return figures{rate: r.Results[0].Goodput}, nil
}
