package vm

import (
	"os"
	"path/filepath"
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
		"-test.coverprofile=/profiles/coverprofile", "-test.cpuprofile=/profiles/cpuprofile", "-test.gocoverdir=/profiles/gocoverdir", "-own=1",
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
	require.Equal(t, []string{filepath.Join(root, "a/testdata"), filepath.Join(root, "testdata")}, testdataDirs(root))
}

func TestParseLibraries(t *testing.T) {
	require.Equal(t, []string{"/lib/x86_64-linux-gnu/libc.so.6", "/lib64/ld-linux-x86-64.so.2"}, parseLibraries(
		"\tlinux-vdso.so.1 (0x00007ffd)\n\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f)\n\t/lib64/ld-linux-x86-64.so.2 (0x00007f)\n\tlibgone.so => not found\n"))
}
