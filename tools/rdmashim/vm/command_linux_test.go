package vm

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/amount"
	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/tools/internal/cli/clitest"
	"github.com/rdmashim/rdmashim/vm/vmtest"
)

func TestMain(m *testing.M) {
	clitest.Main(m, func() []*cobra.Command { return []*cobra.Command{Command()} })
}

func TestUsage(t *testing.T) {
	clitest.Refused(t, 2, "", map[string]string{
		"vm run":                   "needs a command",
		"vm test":                  "needs a package",
		"vm exec":                  "needs a test binary",
		"vm build":                 "needs -o",
		"vm run --add a:b -- true": "HOSTPATH",
	})
	clitest.Refused(t, 125, "", map[string]string{
		"vm run --nodes 3 -- true":           "3 nodes",
		"vm run --env X -- true":             "NAME=VALUE",
		"vm run --kernel x -- true":          "needs both",
		"vm run --accel warp -- true":        "warp",
		"vm run --qemu no-such-qemu -- true": "install",
	})
	clitest.Refused(t, 1, "", map[string]string{
		"vm guest": "inside a guest",
	})
}

// TestGoTest runs tests in a guest: with the tool, and with go test -exec.
func TestGoTest(t *testing.T) {
	image := vmtest.Config(t).Image
	module := filepath.Join(t.TempDir(), "sample")
	put := func(name, text string) {
		path := filepath.Join(module, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	put("go.mod", "module example.org/sample\n\ngo 1.26\n")
	put("testdata/f", "data")
	put("sub/testdata/g", "data")
	put("empty/empty.go", "package empty\n")
	put("sub/sub.go", "package sub\n\nfunc F() int { return 1 }\n")
	put("sub/sub_test.go", `package sub

import (
	"os"
	"testing"
)

func TestGuest(t *testing.T) {
	if _, err := os.Stat("/dev/infiniband/uverbs0"); err != nil || F() != 1 {
		t.Fatal(err)
	}
}

func TestData(t *testing.T) {
	for _, name := range []string{"testdata/g", "../testdata/f"} {
		if _, err := os.ReadFile(name); err != nil {
			t.Error(err)
		}
	}
}

func TestSkipped(t *testing.T) { t.Skip("a reason") }
`)
	put("bad/bad_test.go", "package bad\n\nimport \"testing\"\n\nfunc TestBad(t *testing.T) { t.Error(\"what was wrong\") }\n")

	cmd := clitest.Tool(t, "vm", "test", "--image", image, "--boot-timeout", "5m", "./...")
	cmd.Dir = module
	o := clitest.Finish(t, cmd)
	require.Equal(t, 1, o.Code, "stdout: %s stderr: %s", o.Stdout, o.Stderr)
	for _, want := range []string{
		"ok  \texample.org/sample/sub\t", "FAIL\texample.org/sample/bad\t", "?   \texample.org/sample/empty\t[no test files]",
		"what was wrong",
	} {
		require.Contains(t, o.Stdout, want)
	}
	require.NotContains(t, o.Stdout, "a reason", "what passed is quiet")

	if !amount.All() {
		return // tests/guest uses go test -exec as well
	}
	self := must.Get(os.Executable())(t)
	gotest := exec.CommandContext(t.Context(), "go", "test", "-v", "-coverprofile="+filepath.Join(module, "cover"), "-exec", self+" vm exec --boot-timeout 5m --image "+image, "./sub")
	gotest.Dir = module
	gotest.Env = append(os.Environ(), clitest.AsTool+"=1", "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off")
	out, err := gotest.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "--- PASS: TestData")
	require.Contains(t, string(out), "coverage: 100.0%")
	require.FileExists(t, filepath.Join(module, "cover"))
}

// TestBuild holds the printed sum to the written file.
func TestBuild(t *testing.T) {
	vmtest.Config(t)
	file := filepath.Join(t.TempDir(), "image")
	o := clitest.RunTool(t, "vm", "build", "-o", file).Well(t)
	image := must.Get(os.ReadFile(file))(t)
	require.Equal(t, fmt.Sprintf("%x  %s\n", sha256.Sum256(image), file), o.Stdout)
}

// TestKilled kills the tool while a guest boots: its QEMU ends as well.
func TestKilled(t *testing.T) {
	image := vmtest.Config(t).Image
	cmd := clitest.Tool(t, "vm", "run", "--accel", "tcg", "--image", image, "--", "sleep", "1000")
	cmd.Env = append(cmd.Env, "TMPDIR="+t.TempDir()) // a log is left by one that is killed
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	require.NoError(t, cmd.Start())
	defer cmd.Wait()
	defer cmd.Process.Kill()
	qemu := 0
	for deadline := time.Now().Add(2 * time.Minute); qemu == 0; time.Sleep(20 * time.Millisecond) {
		require.True(t, time.Now().Before(deadline), "no QEMU was started: %s", &stderr)
		qemu = childNamed(t, cmd.Process.Pid, "qemu-system")
	}
	require.NoError(t, cmd.Process.Kill())
	for deadline := time.Now().Add(2 * time.Minute); syscall.Kill(qemu, 0) == nil && !zombie(qemu); time.Sleep(20 * time.Millisecond) {
		require.True(t, time.Now().Before(deadline), "QEMU %d still runs", qemu)
	}
}

// childNamed finds a child of a process by the start of its name.
func childNamed(t *testing.T, parent int, name string) int {
	t.Helper()
	stats := must.Get(filepath.Glob("/proc/[0-9]*/stat"))(t)
	for _, s := range stats {
		text, err := os.ReadFile(s)
		if err != nil {
			continue
		}
		var pid, ppid int
		var comm, state string
		if n, _ := fmt.Sscanf(string(text), "%d %s %s %d", &pid, &comm, &state, &ppid); n == 4 && ppid == parent && strings.HasPrefix(comm, "("+name) {
			return pid
		}
	}
	return 0
}

// zombie says whether of a process only its entry is left.
func zombie(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, after, _ := strings.Cut(string(stat), ") ")
	return err != nil || strings.HasPrefix(after, "Z")
}
