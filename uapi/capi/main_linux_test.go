package capi

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/cbuild"
	"github.com/rdmashim/rdmashim/tests/must"
)

// patience bounds a hang.
const patience = 2 * time.Minute

// home is where the page's reader installs the library, and builds in src.
var home string

// TestMain is also the command that the page calls: rdmashim capi install
// --prefix DIR.
func TestMain(m *testing.M) {
	if len(os.Args) == 5 && os.Args[1] == "capi" {
		if _, err := Install(Config{Prefix: os.Args[4]}); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	code := m.Run()
	if home != "" {
		os.RemoveAll(home)
	}
	os.Exit(code)
}

var fence = regexp.MustCompile("(?ms)^```([^\n]*)\n(.*?)^```$")

// followed carries out docs/c.md, up to where the two programs are started.
var followed = sync.OnceValue(func() error {
	page, err := os.ReadFile("../../docs/c.md")
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if home, err = os.MkdirTemp("", "capi"); err != nil {
		return err
	}
	src := filepath.Join(home, "src")
	if err := os.Mkdir(src, 0o755); err != nil {
		return err
	}
	if err := os.Symlink(self, filepath.Join(src, "rdmashim")); err != nil {
		return err
	}
	for _, m := range fence.FindAllSubmatch(page, -1) {
		language, text := string(m[1]), string(m[2])
		if name, ok := strings.CutPrefix(language, "c "); ok {
			if err := os.WriteFile(filepath.Join(src, name), m[2], 0o644); err != nil {
				return err
			}
			continue
		}
		text, _, _ = strings.Cut(text, "./hello")
		cmd := exec.Command("sh", "-ec", text)
		cmd.Dir, cmd.Env = src, environment("HOME="+home, "PATH="+src+":"+os.Getenv("PATH"))
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", text, err, out)
		}
	}
	return nil
})

// environment is the process's own, and where Go keeps what it has built: the
// home is another one.
func environment(more ...string) []string {
	env := os.Environ()
	for _, name := range []string{"GOCACHE", "GOMODCACHE", "GOPATH"} {
		if out, err := exec.Command("go", "env", name).Output(); err == nil {
			env = append(env, name+"="+strings.TrimSpace(string(out)))
		}
	}
	return append(env, more...)
}

// installed returns the directory of the reader of docs/c.md, once the library
// is installed and the page's program built.
func installed(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("it builds two libraries")
	}
	_, err := cbuild.Compiler()
	if err == nil {
		_, err = exec.LookPath("pkg-config")
	}
	if err != nil {
		require.NotEqual(t, "true", os.Getenv("CI"), "%v", err)
		t.Skip(err)
	}
	require.NoError(t, followed())
	return home
}

// compile compiles C with the installed library; static is the archive.
func compile(t *testing.T, home string, static bool, args ...string) (program string) {
	t.Helper()
	cc := must.Get(cbuild.Compiler())(t)
	program = filepath.Join(t.TempDir(), "program")
	lib := filepath.Join(home, ".local", "lib")
	args = append(args, "-o", program, "-pthread", "-I"+filepath.Join(home, ".local", "include", "rdmashim"))
	if static {
		args = append(args, filepath.Join(lib, staticName))
	} else {
		args = append(args, "-L"+lib, "-lrdmashim", "-Wl,-rpath,"+lib)
	}
	out, err := exec.Command(cc, args...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return program
}

// process is a C program that runs.
type process struct {
	t *testing.T
	*exec.Cmd
	out bytes.Buffer
}

// start starts a program on a device.
func start(t *testing.T, device, program string, args ...string) *process {
	t.Helper()
	p := &process{t: t, Cmd: exec.CommandContext(t.Context(), program, args...)}
	// LeakSanitizer cannot stop Go's threads, and does not know Go's memory.
	p.Env = append(os.Environ(), "RDMASHIM_DEVICE="+device, "ASAN_OPTIONS=detect_leaks=0")
	p.Stdout, p.Stderr, p.WaitDelay = &p.out, &p.out, patience
	require.NoError(t, p.Start())
	kill := time.AfterFunc(patience, func() { _ = p.Process.Kill() })
	t.Cleanup(func() { kill.Stop() })
	return p
}

// prints waits for the program's end and compares its output.
func (p *process) prints(want string) {
	p.t.Helper()
	err := p.Wait()
	require.NoError(p.t, err, "%v: %s", p.Args, &p.out)
	require.Equal(p.t, want, p.out.String())
}

// newDevice names a soft device at an address that no other test takes.
func newDevice() string {
	return fmt.Sprintf("soft:127.%d.%d.%d", 64+rand.IntN(128), rand.IntN(256), 1+rand.IntN(254))
}
