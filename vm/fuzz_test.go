package vm

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
)

// FuzzText gives any text to the readers of other programs' output: the dynamic
// linker, lists of modules, a guest's kernel log.
func FuzzText(f *testing.F) {
	f.Add([]byte("\tlibc.so.6 => /lib/libc.so.6 (0x00007f)\n\t/lib64/ld-linux-x86-64.so.2 (0x00007f)\n\tx => not found\n"))
	f.Add([]byte("kernel/drivers/infiniband/sw/rxe/rdma_rxe.ko\nkernel/a-b.ko.xz\n.ko\n"))
	f.Add([]byte("<4>[    1.5] BUG: unable to handle page fault\n<4>[    1.5] Call Trace:\r\n---[ end trace ]---\n[ 2.0][ T1] WARNING: CPU: 0\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, path := range parseLibraries(string(text)) {
			require.True(t, strings.HasPrefix(path, "/"))
		}
		for _, line := range strings.Fields(string(text)) {
			if name, ok := nameOfModule(line); ok {
				require.NotContains(t, name, "/")
			}
		}
		var out bytes.Buffer
		judge := &logJudge{out: &out}
		s := judge.source()
		n := must.Get(io.Copy(s, dribble{bytes.NewReader(text)}))(t)
		require.Equal(t, int64(len(text)), n)
		s.flush()
		complaints, stalls := judge.verdict()
		require.LessOrEqual(t, len(stalls), maxComplaints)
		require.LessOrEqual(t, len(complaints), maxComplaints*(1+complaintLines))
		_ = judge.lastLine()
	})
}

// dribble gives a few bytes at a time, as a pipe may.
type dribble struct{ r io.Reader }

func (d dribble) Read(b []byte) (int, error) { return d.r.Read(b[:min(len(b), 7)]) }
