package vm_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/amount"
	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/vm"
	"github.com/rdmashim/rdmashim/vm/vmtest"
)

// inGuest runs commands in one guest.
type inGuest struct{ s *vm.Session }

func (g inGuest) run(t *testing.T, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	var out, errs bytes.Buffer
	err = g.s.Exec(t.Context(), 0, vm.Command{Args: args, Stdout: &out, Stderr: &errs})
	return out.String(), errs.String(), err
}

func (g inGuest) ok(t *testing.T, args ...string) string {
	t.Helper()
	stdout, stderr, err := g.run(t, args...)
	require.NoError(t, err, "stderr: %s", stderr)
	return stdout
}

// TestGuest boots one guest and holds it to the promises of guests. At last its
// kernel panics, which fails the run and is quoted.
func TestGuest(t *testing.T) {
	c := vmtest.Config(t)
	c.LogFile = filepath.Join(t.TempDir(), "log")
	cat := must.Get(exec.LookPath("cat"))(t)
	c.Add = []vm.Add{{Host: cat, Guest: "/host/cat"}, {Host: "testdata", Guest: "/data"}, {Host: "doc.go", Guest: "/tmp/doc.go"}}
	c.Out = filepath.Join(t.TempDir(), "out")
	s := must.Get(vm.Start(t.Context(), c))(t)
	g := inGuest{s}
	for name, test := range map[string]func(*testing.T){
		"scripts": g.scripts,
		"rxe":     g.rxe,
		"input":   g.input,
		"output":  g.output,
		"files":   g.files,
		"limits":  g.limits,
	} {
		t.Run(name, test)
	}
	t.Run("crash", g.crash) // the last
	r, err := s.Close()
	var kernel *vm.KernelError
	require.ErrorAs(t, err, &kernel)
	require.Contains(t, kernel.Lines[0], "Kernel panic", "what the kernel complains of first")
	require.Equal(t, c.LogFile, kernel.Log)
	log := must.Get(os.ReadFile(c.LogFile))(t)
	for _, want := range []string{
		"Linux version",           // the kernel's first line
		"rdmashim: link rxe0: on", // the link manager's last step
		"sysrq: Trigger a crash",
	} {
		require.True(t, bytes.Contains(log, []byte(want)), "the log tells %q", want)
	}
	fmt.Printf("vm: image %.1f MB, booted in %.1f s with %s\n", float64(r.Image.Size)/1e6, r.Boot.Seconds(), r.Accel)
	require.Less(t, r.Image.Size, int64(50e6))
}

// scripts are the first lines that people type: sh -c, started by the host, by
// a script, by xargs and by its name in a file.
func (g inGuest) scripts(t *testing.T) {
	const file = "/tmp/a script.sh"
	g.ok(t, "sh", "-c", `printf '#!/bin/sh\necho "$1" $#\nexit 6\n' >"$1" && chmod 755 "$1"`, "sh", file)
	for _, c := range []struct {
		status int
		stdout string
		args   []string
	}{
		{7, "", []string{"sh", "-c", "exit 7"}},
		{7, "", []string{"/bin/sh", "-c", "exit 7"}},
		{0, "2\n", []string{"sh", "-c", "printf 'a\nb\n' | grep -v c | wc -l | tr -d ' '"}},
		{0, "one\ntwo\n", []string{"sh", "-c", "cd /tmp; X=two; echo one >f; echo $X >>f 2>&1; cat <f"}},
		{1, "", []string{"sh", "-euc", "false; echo no"}},
		{5, "in\n", []string{"sh", "-c", `sh -c 'echo $0; exit 5' in; exit $?`}},
		{0, "x y\n", []string{"sh", "-c", `echo x y | xargs sh -c 'echo $1 $2' sh`}},
		{6, "a b 2\n", []string{file, "a b", ""}},
		{6, "a 1\n", []string{"sh", file, "a"}},
		{0, `<it's "quoted" \n $HOME *><><` + "\n\xff\t>", []string{"sh", "-c", `printf '<%s>' "$@"`, "sh", `it's "quoted" \n $HOME *`, "", "\n\xff\t"}},
	} {
		stdout, stderr, err := g.run(t, c.args...)
		status := 0
		if exit := (*vm.ExitError)(nil); errors.As(err, &exit) {
			status, err = exit.Status(), nil
		}
		require.NoError(t, err, "%q", c.args)
		require.Equal(t, c.status, status, "%q: %s", c.args, stderr)
		require.Equal(t, c.stdout, stdout, "%q", c.args)
		require.Empty(t, stderr, "%q", c.args)
	}
}

func (g inGuest) rxe(t *testing.T) {
	require.Equal(t, "rxe0", g.s.Nodes[0].Link)
	require.Contains(t, g.ok(t, "cat", "/sys/class/infiniband/rxe0/ports/1/state"), "ACTIVE")
	devices := g.ok(t, "ls", "/dev/infiniband")
	for _, d := range []string{"uverbs0", "rdma_cm", "umad0"} {
		require.Contains(t, devices, d)
	}
	require.Contains(t, g.ok(t, "rdmashim", "version"), "rdmashim")
	require.Contains(t, g.ok(t, "sh", "-c", "echo $RDMASHIM_NODE $RDMASHIM_ADDR"), "0 10.77.0.1")
	require.NotContains(t, g.ok(t, "ls", "/sys/class/net"), "dummy0")
}

func (g inGuest) input(t *testing.T) {
	data := make([]byte, 1<<20)
	for i := range data {
		data[i] = byte(i * i >> 5)
	}
	var out bytes.Buffer
	err := g.s.Exec(t.Context(), 0, vm.Command{Args: []string{"shasum", "-a", "256"}, Stdin: bytes.NewReader(data), Stdout: &out})
	require.NoError(t, err)
	require.Contains(t, out.String(), fmt.Sprintf("%x", sha256.Sum256(data)))

	// A command that reads none of it ends all the same.
	err = g.s.Exec(t.Context(), 0, vm.Command{Args: []string{"true"}, Stdin: endless{}})
	require.NoError(t, err)
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

// output reads slowly while the guest writes quickly: nothing is lost, and the
// guest's processor is not stopped.
func (g inGuest) output(t *testing.T) {
	h := sha256.New()
	n := int64(0)
	slow := writer(func(p []byte) (int, error) {
		if n += int64(len(p)); n < 1<<20 {
			time.Sleep(2 * time.Millisecond)
		}
		return h.Write(p)
	})
	const size = 4 << 20
	err := g.s.Exec(t.Context(), 0, vm.Command{Args: []string{"head", "-c", fmt.Sprint(size), "/dev/zero"}, Stdout: slow})
	require.NoError(t, err)
	require.EqualValues(t, size, n)
	require.Equal(t, fmt.Sprintf("%x", sha256.Sum256(make([]byte, size))), fmt.Sprintf("%x", h.Sum(nil)))
}

type writer func([]byte) (int, error)

func (w writer) Write(p []byte) (int, error) { return w(p) }

func (g inGuest) files(t *testing.T) {
	require.Equal(t, "some text\n", g.ok(t, "/host/cat", "/data/file"), "a dynamic program brings its libraries")
	require.Contains(t, g.ok(t, "cat", "/tmp/doc.go"), "package vm", "/tmp is a file system of its own")
	g.ok(t, "sh", "-c", "mkdir -p /out/sub && echo back > /out/sub/f")
	out := t.TempDir()
	require.NoError(t, g.s.Nodes[0].Pull(t.Context(), "/out", out))
	text := must.Get(os.ReadFile(filepath.Join(out, "sub/f")))(t)
	require.Equal(t, "back\n", string(text))
	require.Error(t, g.s.Nodes[0].Pull(t.Context(), "/nowhere", out))
	g.ok(t, "true")
}

// limits: the limits that a user of the guest may rely on.
func (g inGuest) limits(t *testing.T) {
	require.Equal(t, "node0\n", g.ok(t, "hostname"))
	require.Contains(t, g.ok(t, "id"), "uid=0")
	require.Equal(t, "/\n", g.ok(t, "pwd"))
	var out bytes.Buffer
	require.NoError(t, g.s.Exec(t.Context(), 0, vm.Command{Args: []string{"sh", "-c", "pwd; echo $X"}, Dir: "/made/here", Env: []string{"X=y"}, Stdout: &out}))
	require.Equal(t, "/made/here\ny\n", out.String())
}

// crash: a kernel that panics ends the command.
func (g inGuest) crash(t *testing.T) {
	_, _, err := g.run(t, "sh", "-c", "echo c > /proc/sysrq-trigger; sleep 1000")
	require.ErrorAs(t, err, new(*vm.DiedError))
}

// TestImageReproducible builds an image from another folder, with nothing
// built earlier, and compares.
func TestImageReproducible(t *testing.T) {
	amount.Rest(t)
	c := vmtest.Config(t) // its image was built from this folder
	here := must.Get(os.ReadFile(c.Image))(t)
	elsewhere := filepath.Join(t.TempDir(), "another", "folder")
	copySources(t, "..", elsewhere)
	kernel := must.Get(vm.FindKernel(t.Context(), "", "", "", t.Logf))(t)
	started := time.Now()
	image := must.Get(vm.BuildImage(t.Context(), vm.ImageConfig{Kernel: kernel, Source: elsewhere, Fresh: true, Log: t.Logf}, filepath.Join(t.TempDir(), "image")))(t)
	there := must.Get(os.ReadFile(image.File))(t)
	require.True(t, bytes.Equal(here, there), "images of %d and %d bytes from the same inputs differ", len(here), len(there))
	require.Equal(t, fmt.Sprintf("%x", sha256.Sum256(there)), image.SHA256)
	fmt.Printf("vm: image built anew in %.1f s: the same %d bytes\n", time.Since(started).Seconds(), len(there))
}

// copySources copies the files that a Go module is built from.
func copySources(t *testing.T, from, to string) {
	require.NoError(t, filepath.WalkDir(from, func(p string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(from, p)
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || d.Name() == "testdata"):
			return fs.SkipDir
		case d.IsDir():
			return os.MkdirAll(filepath.Join(to, rel), 0o755)
		case !d.Type().IsRegular():
			return nil
		}
		return os.WriteFile(filepath.Join(to, rel), must.Get(os.ReadFile(p))(t), 0o644)
	}))
}
