package rdma

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/netlinkmgr"
	"github.com/rdmashim/rdmashim/tests/netlinktest"
)

// TestBatch: the lines of a file are commands, up to the first that fails, or
// with force all.
func TestBatch(t *testing.T) {
	const text = "# names\n\ndev set rxe0 \\\nname fast # quick\nsys set netns exclusive\nlin sh\n"
	const wants = `[{"ifindex":0,"ifname":"fast","port":1,"state":"ACTIVE"`
	for _, c := range []struct {
		args   string
		stdin  string
		refuse string
		did    string
		says   string
		shows  bool
	}{
		{"-j -b FILE", "", "", "rename 0 fast; setnetns 0", "", true},
		{"-batch -", text, "", "rename 0 fast; setnetns 0", "", false},
		{"-b FILE", "", "setnetns", "rename 0 fast; setnetns 0", "FILE:5: sys set netns exclusive: ", false},
		{"-force -j -batch FILE", "", "setnetns", "rename 0 fast; setnetns 0", "FILE: 1 of its lines failed", true},
		{"-b no-such-file", "", "", "", "no-such-file", false},
		{"-b -", "link show colour", "", "", "-:1: link show colour: ", false},
	} {
		k := netlinktest.Busy()
		k.Refuse[c.refuse] = syscall.EPERM
		file := filepath.Join(t.TempDir(), "lines")
		require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
		root := newRoot(func() (*netlinkmgr.Manager, error) { return k.Manager(), nil })
		var stdout bytes.Buffer
		root.SetArgs(Args(strings.Fields(strings.ReplaceAll(c.args, "FILE", file)), true))
		root.SetIn(strings.NewReader(c.stdin))
		root.SetOut(&stdout)
		root.SetErr(&bytes.Buffer{})
		err := root.ExecuteContext(t.Context())
		if c.says == "" {
			require.NoError(t, err, c.args)
		} else {
			require.ErrorContains(t, err, strings.ReplaceAll(c.says, "FILE", file), c.args)
		}
		require.Equal(t, c.did, strings.Join(k.Did, "; "), c.args)
		require.Equal(t, c.shows, strings.Contains(stdout.String(), wants), "%s: %s", c.args, &stdout)
	}
}
