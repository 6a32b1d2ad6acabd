package main

import (
	"bytes"
	"context"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/netlinkmgr"
	"github.com/rdmashim/rdmashim/tests/netlinktest"
	"github.com/rdmashim/rdmashim/tools/internal/cli"
	"github.com/rdmashim/rdmashim/tools/rdmashim/rdma"
)

// runRDMA runs a command line in iproute2's words on a kernel that is not real.
func runRDMA(t *testing.T, k *netlinktest.Kernel, line string) (string, string, error) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	root := cli.NewRoot("rdmashim", rdma.Commands(func() (*netlinkmgr.Manager, error) { return k.Manager(), nil })...)
	root.SetArgs(rdma.Args(strings.Fields(line), false))
	root.SetOut(&stdout)
	root.SetErr(&stderr)
	err := root.ExecuteContext(t.Context())
	return stdout.String(), stderr.String(), err
}

// runMonitor gives what 'monitor -j' prints of two events that have all keys.
func runMonitor(t *testing.T) string {
	t.Helper()
	k := netlinktest.Busy()
	root := cli.NewRoot("rdmashim", rdma.Commands(func() (*netlinkmgr.Manager, error) { return k.Manager(), nil })...)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var stdout bytes.Buffer
	lines := 0
	root.SetArgs([]string{"monitor", "-j"})
	root.SetErr(onWrite(func([]byte) { // it listens
		k.Notify(netlinkmgr.Notice{Source: netlinkmgr.SourceLink, Link: k.Dev("eth0")})
		k.Notify(netlinkmgr.Notice{Source: netlinkmgr.SourceUevent, Message: netlinktest.Uevent("move", "fast", "rxe0")})
	}))
	root.SetOut(onWrite(func(b []byte) {
		stdout.Write(b)
		if lines++; lines == 2 {
			stop()
		}
	}))
	require.NoError(t, root.ExecuteContext(ctx))
	return stdout.String()
}

// onWrite does something with what is written.
type onWrite func([]byte)

func (f onWrite) Write(b []byte) (int, error) { f(b); return len(b), nil }

// TestCalledAsRDMA: the program goes by its name.
func TestCalledAsRDMA(t *testing.T) {
	as := func(args ...string) outcome {
		cmd := tool(t, args...)
		cmd.Args[0] = "/usr/bin/rdma"
		return finish(t, cmd)
	}
	o := as("-V")
	require.Equal(t, outcome{Stdout: "rdma utility, rdmashim-" + cli.Version + "\n"}, o)
	help := as("help").Stdout
	for _, says := range []string{"statistic", "-j, --json", "-p, --pretty", "-d, --details"} {
		require.Contains(t, help, says)
	}
	require.Equal(t, 2, as("demo").Code, "other commands are not there")
	o = as("link", "frob")
	require.Equal(t, 2, o.Code)
	require.Contains(t, o.Stderr, "rdma: unknown link command")
	o = as("l", "s", "nosuch0")
	require.Equal(t, 1, o.Code)
	require.Empty(t, o.Stdout)
	if runtime.GOOS != "linux" {
		require.Contains(t, o.Stderr, "only Linux")
	}
	require.True(t, rdma.IsName("rdma"))
	require.True(t, rdma.IsName("/x/rdma.exe"))
	require.False(t, rdma.IsName("rdmashim"))
}
