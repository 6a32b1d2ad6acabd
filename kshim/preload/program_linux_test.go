package preload

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/rdmashim/rdmashim/kshim/cbuild"
	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/tests/netns"
)

// copyOf copies a program's file, with other permissions.
func copyOf(t *testing.T, path string, mode fs.FileMode) string {
	t.Helper()
	b := must.Get(os.ReadFile(path))(t)
	to := filepath.Join(t.TempDir(), "copy")
	require.NoError(t, os.WriteFile(to, b, 0o700))
	require.NoError(t, os.Chmod(to, mode))
	return to
}

// patched copies a program's file with other bytes in it, where old is.
func patched(t *testing.T, path string, old, new string) string {
	t.Helper()
	to := copyOf(t, path, 0o700)
	b := must.Get(os.ReadFile(to))(t)
	at := bytes.Index(b, []byte(old))
	require.NotEqual(t, -1, at, "%s has no %q", path, old)
	copy(b[at:], new)
	require.NoError(t, os.WriteFile(to, b, 0o700))
	return to
}

// TestLook: a program that the stub does not reach is told why, and what to do.
func TestLook(t *testing.T) {
	must.Get(Look("true"))(t)
	must.Fail(Look("no such program"))(t, exec.ErrNotFound)
	true_ := must.Get(exec.LookPath("true"))(t)
	self := must.Get(os.Executable())(t)
	f := must.Get(elf.Open(true_))(t)
	defer f.Close()
	interpreter := must.Get(f.Section(".interp").Data())(t)
	require.Greater(t, len(interpreter), len("/lib/ld-musl-x86_64.so.1"))
	ident := must.Get(os.ReadFile(true_))(t)
	other := append(ident[:18:18], byte(elf.EM_RISCV), 0)

	for name, c := range map[string]struct{ path, what, remedy string }{
		"set-user-ID":   {copyOf(t, true_, 0o700|fs.ModeSetuid), "is set-user-ID or set-group-ID", "run a copy without the bit"},
		"set-group-ID":  {copyOf(t, true_, 0o700|fs.ModeSetgid), "is set-user-ID or set-group-ID", "run a copy without the bit"},
		"Go":            {self, "is a Go program", "Go programs import github.com/rdmashim/rdmashim/uapi"},
		"musl":          {patched(t, true_, string(interpreter), "/lib/ld-musl-x86_64.so.1\x00"), "is linked with musl", "build it on a system with glibc"},
		"other machine": {patched(t, true_, string(ident[:20]), string(other)), "is a program of another architecture, EM_RISCV", "build it for " + runtime.GOARCH},
	} {
		_, err := Look(c.path)
		require.ErrorContains(t, err, c.path+" "+c.what, name)
		require.ErrorContains(t, err, c.remedy, name)
	}

	script := filepath.Join(t.TempDir(), "script")
	require.NoError(t, os.WriteFile(script, []byte("#!"+self+" -x\n"), 0o700))
	_, err := Look(script)
	require.ErrorContains(t, err, "is a Go program", "of the script's interpreter")
	require.NoError(t, os.WriteFile(script, []byte("#!/bin/sh\n"), 0o700))
	must.Get(Look(script))(t)
}

// TestStatic: a program that is linked statically is told so, also one that can
// be loaded anywhere.
func TestStatic(t *testing.T) {
	cc, err := cbuild.Compiler()
	if err != nil {
		require.NotEqual(t, "true", os.Getenv("CI"), "%v", err)
		t.Skip(err)
	}
	for _, flag := range []string{"-static", "-static-pie"} {
		path := filepath.Join(t.TempDir(), "static")
		compile := exec.Command(cc, flag, "-o", path, "-xc", "-")
		compile.Stdin = strings.NewReader("int main(void) { return 0; }")
		out, err := compile.CombinedOutput()
		require.NoError(t, err, "%s", out)
		_, err = Look(path)
		require.ErrorContains(t, err, path+" is statically linked")
		require.ErrorContains(t, err, "link it dynamically")
	}
}

// TestCapabilities: a program whose file has capabilities is told so.
func TestCapabilities(t *testing.T) {
	if os.Getuid() != 0 && !netns.Own(t) { // there it is root
		return
	}
	true_ := must.Get(exec.LookPath("true"))(t)
	path := copyOf(t, true_, 0o700)
	must.Get(Look(path))(t)
	const revision2, effective, netRaw = 2 << 24, 1, 1 << 13
	value := make([]byte, 20) // struct vfs_cap_data
	binary.LittleEndian.PutUint32(value, revision2|effective)
	binary.LittleEndian.PutUint32(value[4:], netRaw)
	if err := unix.Setxattr(path, "security.capability", value, 0); err != nil {
		require.NotEqual(t, "true", os.Getenv("CI"), "%v", err)
		t.Skip("no capabilities on files here: ", err)
	}
	_, err := Look(path)
	require.ErrorContains(t, err, path+" has file capabilities")
	require.ErrorContains(t, err, "run a copy, which has none")
	must.Get(Look(copyOf(t, path, 0o700)))(t)
}

// TestNoCompiler: without a C compiler the message names the packages to
// install.
func TestNoCompiler(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv("CC", "")
	_, err := findIn(t.TempDir(), io.Discard)
	require.ErrorContains(t, err, "apt-get install gcc libc6-dev")
}

func TestCheckDevice(t *testing.T) {
	for _, good := range []string{"soft", "soft:127.0.0.5", "soft?loss=1%", "soft:[::1]?mtu=1024"} {
		require.NoError(t, CheckDevice(good))
	}
	for _, bad := range []string{"", "sim", "rxe0", "softly", "soft\nsoft"} {
		require.Error(t, CheckDevice(bad), "%q", bad)
	}
}

// TestEnvironment: the variables come back as they went, and what else was to
// be preloaded still is, behind the stub, which is there once.
func TestEnvironment(t *testing.T) {
	e := Environment{"RUN", []string{"soft:127.0.0.5", "soft?pcap=a b"}}
	first := e.over([]string{"HOME=/", "ASAN_OPTIONS=exitcode=3", "LD_PRELOAD=/a.so /b.so"}, Libraries{"/l/" + stubFile, "/l/k.so"})
	require.Contains(t, first, "LD_PRELOAD=/l/"+stubFile+":/a.so:/b.so")
	again := e.over(first, Libraries{"/m/" + stubFile, "/m/k.so"})
	require.Contains(t, again, "LD_PRELOAD=/m/"+stubFile+":/a.so:/b.so")
	require.Contains(t, again, "ASAN_OPTIONS=exitcode=3:verify_asan_link_order=0")
	require.Len(t, again, len(first))
	for _, v := range again {
		name, value, _ := strings.Cut(v, "=")
		t.Setenv(name, map[bool]string{true: "", false: value}[name == "LD_PRELOAD"])
	}
	require.Equal(t, e, FromEnvironment())
}
