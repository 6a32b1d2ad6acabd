package suite

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"

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
	self, err := os.Executable()
	if err != nil {
		return f, err
	}
	var out bytes.Buffer
	client := exec.CommandContext(ctx, self, "perf", "write", "bw", "-s", fmt.Sprint(mebibyte), "-t", fmt.Sprint(vethFlying),
		"-D", fmt.Sprint(s.turn.Seconds()), "--json", "--device", device(n.A), server.Addr)
	client.Stdout, client.Stderr = &out, s.stderr
	if err = errors.Join(n.A.Do(client.Start), client.Wait()); err != nil {
		return f, fmt.Errorf("%v: %w", client.Args[1:4], err)
	}
	var r perf.Report
	if err = json.Unmarshal(out.Bytes(), &r); err != nil {
		return f, err
	}
	if r.Way != way || len(r.Results) != 1 {
		return f, fmt.Errorf("the way is %q, not %q", r.Way, way)
	}
	return figures{rate: r.Results[0].Goodput}, nil
}
