//go:build guest && linux

package guesttest

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/nldev"
	"github.com/rdmashim/rdmashim/netlinkmgr"
	"github.com/rdmashim/rdmashim/tests/must"
)

// recorded are the commands whose output by iproute2 goes into the recording.
var recorded = []string{
	"link show", "-d link show", "dev show", "-d dev show", "resource show", "resource show qp", "resource show cq", "resource show mr",
	"resource show pd", "resource show cm_id", "resource show ctx", "statistic show",
}

// TestRecord writes what this kernel answers while a link is used, and what
// iproute2 makes of it, for the tests that have no kernel:
//
//	rdmashim vm test --no-link --tags guest --add /usr/bin/rdma --run TestRecord --out tests/netlinktest/testdata ./netlinkmgr/guesttest
func TestRecord(t *testing.T) {
	rdma := theirs(t)
	b := makeBusy(t)
	b.connect(t)
	kernel := must.Get(netlinkmgr.Running())(t)
	var out strings.Builder
	fmt.Fprintf(&out, "release %s\n", kernel.Release)
	ask := kernel.RDMA
	seen := map[string]bool{}
	kernel.RDMA = func(ctx context.Context, r netlinkmgr.Request) ([][]byte, error) {
		answers, err := ask(ctx, r)
		if key := fmt.Sprintf("%d %v %x", nldev.Command(r.Command), r.Dump, r.Attrs); err == nil && !seen[key] {
			seen[key] = true
			fmt.Fprintf(&out, "# RDMA_NLDEV_CMD_%s\n> %s\n", r.Command, key)
			for _, a := range answers {
				fmt.Fprintf(&out, "< %x\n", a)
			}
		}
		return answers, err
	}
	askAll(t, netlinkmgr.New(kernel), b.r.Device)
	port := "sys/class/infiniband/" + b.r.Device + "/ports/1/"
	for _, f := range []string{fmt.Sprintf("proc/%d/comm", b.thread), port + "gids/0", port + "gids/1", port + "gids/2", port + "gid_attrs/types/0", port + "gid_attrs/types/1", port + "gid_attrs/ndevs/0", port + "gid_attrs/ndevs/1"} {
		text := must.Get(fs.ReadFile(kernel.Root, f))(t)
		fmt.Fprintf(&out, "file %s %s\n", f, strings.TrimSpace(string(text)))
	}
	for _, line := range recorded {
		o := run(t, 0, rdma, append([]string{"-j"}, strings.Fields(line)...)...)
		require.Zero(t, o.code)
		fmt.Fprintf(&out, "rdma %s\n| %s", line, o.stdout)
	}
	if dir := os.Getenv("RDMASHIM_OUT"); dir != "" {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "nldev-6.1.txt"), []byte(out.String()), 0o644))
	}
}

// askAll asks everything that a manager can.
func askAll(t *testing.T, m *netlinkmgr.Manager, name string) {
	ctx := t.Context()
	d := must.Get(m.Device(ctx, name))(t)
	for _, f := range []func() error{
		func() error { _, err := m.Ports(ctx, d); return err },
		func() error { _, err := m.Counters(ctx, d, 1); return err },
		func() error { _, err := m.Summary(ctx, d); return err },
		func() error { _, err := m.QPs(ctx, d); return err },
		func() error { _, err := m.CQs(ctx, d); return err },
		func() error { _, err := m.MRs(ctx, d); return err },
		func() error { _, err := m.PDs(ctx, d); return err },
		func() error { _, err := m.CMIDs(ctx, d); return err },
		func() error { _, err := m.Contexts(ctx, d); return err },
		func() error { _, err := m.System(ctx); return err },
		func() error { _, err := m.CharDev(ctx, d, "uverbs"); return err },
	} {
		require.NoError(t, f())
	}
}
