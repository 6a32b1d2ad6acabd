package vmtest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rdmashim/rdmashim/tests/amount"
	"github.com/rdmashim/rdmashim/tests/built"
	"github.com/rdmashim/rdmashim/vm"
)

// prepared builds the image, once a process, where the run has built none.
var prepared = sync.OnceValues(func() (*vm.Image, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	if err := vm.Check(""); err != nil {
		return nil, err
	}
	if file, ok := built.Path(built.Image); ok {
		return &vm.Image{File: file}, nil
	}
	kernel, err := vm.FindKernel(ctx, "", "", "", func(string, ...any) {})
	if err != nil {
		return nil, err
	}
	return vm.CachedImage(ctx, vm.ImageConfig{Kernel: kernel})
})

// watchSources reads the module's directories, so that the go command keeps a
// test's result only while all files in them stay as they are: the guest's
// programs are built from them.
func watchSources() {
	root := "."
	for range 10 {
		if _, err := os.Stat(filepath.Join(root, "go.mod")); err == nil {
			break
		}
		root = filepath.Join("..", root)
	}
	filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil || (d.IsDir() && p != root && strings.HasPrefix(d.Name(), ".")) {
			return fs.SkipDir
		}
		return nil
	})
}

// Config returns a configuration that boots a guest here, or skips the test
// and says why. Other processes do not use its limits up.
func Config(t testing.TB) vm.Config {
	t.Helper()
	ci := os.Getenv("CI") == "true"
	if testing.Short() {
		t.Skip("-short leaves out booting a guest; run it without -short")
	}
	watchSources()
	image, err := prepared()
	var missing *vm.MissingError
	switch {
	case errors.As(err, &missing) && runtime.GOARCH != "amd64" && !ci:
		t.Skip("this machine has no kernel for guests, which are x86-64: ", err)
	case errors.As(err, &missing) && !ci:
		t.Skip("no guest can be booted here: ", err)
	case err != nil:
		t.Fatal("no guest can be booted here: ", err)
	}
	return vm.Config{
		Image:       image.File,
		Timeout:     5 * time.Minute,
		BootTimeout: 5 * time.Minute,
		Log:         t.Logf,
	}
}

// Guest is a guest that runs Go tests.
type Guest struct {
	*vm.Session
	program string // an rdmashim, which go test starts
}

// Start boots a guest, which ends with the test; its commands find CI and the
// amount of tests as they are here. A complaint of its kernel fails the test.
func Start(t *testing.T, c vm.Config) *Guest {
	t.Helper()
	program := built.Tool(t)
	c.Env = append(c.Env, "CI="+os.Getenv("CI"), "RDMASHIM_TESTS="+os.Getenv("RDMASHIM_TESTS"))
	s, err := vm.Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return &Guest{s, program}
}

// event is a line of go test -json (cmd/test2json).
type event struct {
	Action, Package, Test, Output string
	Elapsed                       float64 // seconds of the guest's
}

// GoTest runs 'go test -tags=guest' with args in the guest, reports each test
// as a subtest, skips as skips, and returns what the tests printed. Race-built
// tests are slow there, so that they are told to be short. The tests have no
// limit of their own, which would pass on a busy host as well: when the
// guest's is used up, they print their goroutines.
func (g *Guest) GoTest(t *testing.T, args ...string) string {
	t.Helper()
	args = append([]string{"-json", "-vet=off", "-tags=guest", "-timeout=0"}, args...)
	if amount.Race {
		args = append([]string{"-race", "-short"}, args...)
	}
	var stdout, stderr bytes.Buffer
	err := g.Session.GoTest(t.Context(), g.program, "", args, &stdout, &stderr)
	var all strings.Builder
	output := map[[2]string]string{} // by package and test
	for line := range bytes.Lines(stdout.Bytes()) {
		var e event
		if json.Unmarshal(line, &e) != nil {
			continue
		}
		key := [2]string{e.Package, e.Test}
		all.WriteString(e.Output)
		output[key] += e.Output
		if e.Test == "" || !slices.Contains([]string{"pass", "fail", "skip"}, e.Action) {
			continue
		}
		t.Run(path.Base(path.Dir(e.Package))+"/"+e.Test, func(t *testing.T) {
			switch e.Action {
			case "skip":
				t.Skip("in the guest: " + strings.TrimSpace(output[key]))
			case "fail":
				t.Errorf("in the guest:\n%s", output[key])
			default:
				t.Logf("%.1f s in the guest", e.Elapsed)
			}
		})
	}
	if err != nil {
		t.Error(err, "\n", stderr.String())
		for key, text := range output {
			if key[1] == "" { // a build that failed, a panic outside of tests
				t.Errorf("%s:\n%s", key[0], text)
			}
		}
	}
	return all.String()
}
