//go:build amd64 || arm64

package programs

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestServeRing: four programs are a ring on one device: in C, in Python, in Go
// with cgo, all three with libibverbs, and in Go with uapi. Each one's messages
// go round through the three others.
func TestServeRing(t *testing.T) {
	needs(t)
	verbsHeader(t)
	needsPyverbs(t)
	s := serve(t, 0)
	const turns = "400"
	var ring [4]*talk
	var ends [4]struct{ left, right [2]uint32 } // number and first packet of queue pairs
	for i, line := range [4][]string{
		{compile(t, "ring", "-libverbs"), "C ", turns},
		{python, "-B", "testdata/ring.py", "Python ", turns},
		{goProgram(t, "ringcgo"), "cgo ", turns},
		{goProgram(t, "ringgo"), "Go ", turns},
	} {
		ring[i] = s.talk(line...)
		_, err := fmt.Fscanln(ring[i].out, &ends[i].left[0], &ends[i].left[1], &ends[i].right[0], &ends[i].right[1])
		require.NoError(t, err)
	}
	require.Len(t, s.rows(), 4)
	tell := func(i int, line string) {
		_, err := io.WriteString(ring[i].in, line+"\n")
		require.NoError(t, err)
	}
	for i := range ring {
		left, right := ends[(i+3)%4].right, ends[(i+1)%4].left
		tell(i, fmt.Sprint(left[0], left[1], right[0], right[1]))
		ring[i].says("joined")
	}
	for i := range ring {
		tell(i, "go")
	}
	for i, round := range [4]string{"C Python cgo Go", "Python cgo Go C", "cgo Go C Python", "Go C Python cgo"} {
		ring[i].says(round + " ")
		ring[i].exits(0)
	}
}

// needsPyverbs skips a test without pyverbs.
func needsPyverbs(t *testing.T) {
	t.Helper()
	if out, err := exec.Command(python, "-c", "import pyverbs").CombinedOutput(); err != nil {
		require.NotEqual(t, "true", os.Getenv("CI"), "%s", out)
		t.Skipf("%v: %s: apt-get install python3-pyverbs", err, out)
	}
}

// goProgram builds a program of testdata.
func goProgram(t *testing.T, name string, flags ...string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), name)
	args := append([]string{"build", "-o", program}, flags...)
	out, err := exec.Command("go", append(args, "./testdata/"+name)...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return program
}
