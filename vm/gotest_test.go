package vm

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestGuestTestFlags(t *testing.T) {
	flags, files, limit := guestTestFlags([]string{
		"-test.testlogfile=/tmp/go-build1/b001/testlog.txt", "-test.paniconexit0", "-test.timeout=10m0s", "-test.run=X=Y",
		"-test.coverprofile=/tmp/c.out", "-test.cpuprofile=cpu.out", "-test.outputdir=/work/pkg", "-test.gocoverdir=/tmp/g", "-own=1",
	}, "/here")
	require.Equal(t, []string{
		"-test.paniconexit0", "-test.timeout=10m0s", "-test.run=X=Y",
		"-test.coverprofile=/out/coverprofile", "-test.cpuprofile=/out/cpuprofile", "-test.gocoverdir=/out/gocoverdir", "-own=1",
	}, flags)
	require.Equal(t, map[string]string{"coverprofile": "/tmp/c.out", "cpuprofile": "/work/pkg/cpu.out", "gocoverdir": "/tmp/g"}, files)
	require.Equal(t, 10*time.Minute, limit)

	_, files, limit = guestTestFlags([]string{"-test.trace=t"}, "/here")
	require.Equal(t, map[string]string{"trace": filepath.Join("/here", "t")}, files)
	require.Zero(t, limit)
}

func TestTestdataDirs(t *testing.T) {
	root := t.TempDir()
	for _, d := range []string{"testdata/x/testdata", "a/testdata", "a/b", ".git/testdata", "other/testdata"} {
		require.NoError(t, os.MkdirAll(filepath.Join(root, d), 0o755))
	}
	for _, f := range []string{"go.mod", "other/go.mod"} {
		require.NoError(t, os.WriteFile(filepath.Join(root, f), nil, 0o644))
	}
	require.Equal(t, root, moduleOf(filepath.Join(root, "a/b")))
	require.Equal(t, []string{filepath.Join(root, "a/testdata"), filepath.Join(root, "testdata")}, testdataDirs(root, filepath.Join(root, "a")))
	require.Equal(t, []string{filepath.Join(root, "a/testdata")}, testdataDirs("", filepath.Join(root, "a")))
}

func TestLineWriter(t *testing.T) {
	var lines []string
	w := &lineWriter{each: func(s string) { lines = append(lines, s) }}
	for _, s := range []string{"--- PA", "SS: TestX (0.00s)\n    --- SKIP: TestX/y (0.1s)\nrest"} {
		w.Write([]byte(s))
	}
	w.flush()
	require.Equal(t, []string{"--- PASS: TestX (0.00s)", "    --- SKIP: TestX/y (0.1s)", "rest"}, lines)
	require.Equal(t, []string{"SKIP", "TestX/y"}, testLine.FindStringSubmatch(lines[1])[1:])
	require.True(t, noise.MatchString("=== RUN   TestX"))
	require.False(t, noise.MatchString("--- FAIL: TestX (0.00s)"))
	require.False(t, noise.MatchString("panic: oh"))
}

func TestTestParser(t *testing.T) {
	var p testParser
	// As a test binary of Go 1.26 printed it with -test.v.
	for line := range strings.Lines(`=== RUN   TestA
    a_test.go:6: logged
=== RUN   TestA/x
=== PAUSE TestA/x
=== RUN   TestA/y
    a_test.go:9: a reason
=== CONT  TestA/x
printed
    a_test.go:7: oh
--- FAIL: TestA (0.01s)
    --- SKIP: TestA/y (0.00s)
    --- FAIL: TestA/x (0.00s)
=== RUN   TestB
--- PASS: TestB (0.00s)
FAIL
`) {
		p.line(strings.TrimSuffix(line, "\n"))
	}
	require.Equal(t, []TestOutcome{
		{"TestA", "FAIL", "    a_test.go:6: logged\n"},
		{"TestA/y", "SKIP", "    a_test.go:9: a reason\n"},
		{"TestA/x", "FAIL", "printed\n    a_test.go:7: oh\n"},
		{"TestB", "PASS", ""},
	}, p.tests)
}

func TestParseLibraries(t *testing.T) {
	require.Equal(t, []string{"/lib/x86_64-linux-gnu/libc.so.6", "/lib64/ld-linux-x86-64.so.2"}, parseLibraries(
		"\tlinux-vdso.so.1 (0x00007ffd)\n\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f)\n\t/lib64/ld-linux-x86-64.so.2 (0x00007f)\n\tlibgone.so => not found\n"))
}
