package guest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/kshim/preload"
	"github.com/rdmashim/rdmashim/tests/built"
	"github.com/rdmashim/rdmashim/uapi/capi"
	"github.com/rdmashim/rdmashim/vm"
	"github.com/rdmashim/rdmashim/vm/cprograms"
)

// addCompiled adds what is compiled here to what the guest gets, or tells the
// guest's tests why it is not there: ../interop/testdata/cmpeer.c with the
// packages' librdmacm, the program of ../../docs/c.md, and the libraries by
// which C programs run on the soft RNIC.
func addCompiled(t *testing.T, adds []vm.Add, env []string) ([]vm.Add, []string) {
	t.Helper()
	more, err := compiled(t.Context())
	libraries, ok := built.Path(built.Libraries)
	if err == nil && !ok {
		libraries = filepath.Join(t.TempDir(), built.Libraries)
		err = preload.BuildLibraries(libraries)
	}
	if err != nil {
		require.NotEqual(t, "true", os.Getenv("CI"), "the programs in C: %v", err)
		t.Log("without the programs in C: ", err)
		return adds, append(env, "INTEROP_NO_COMPILED="+strings.ReplaceAll(err.Error(), "\n", " "))
	}
	more = append(more, vm.Add{Host: libraries, Guest: cprograms.Dir + "/" + built.Libraries})
	for _, a := range more {
		if !slices.Contains(adds, a) {
			adds = append(adds, a)
		}
	}
	return adds, env
}

// compiled compiles the programs and says where they and their libraries go.
func compiled(ctx context.Context) ([]vm.Add, error) {
	dir, err := cprograms.Unpacked(ctx)
	if err != nil {
		return nil, err
	}
	libs, _ := filepath.Glob(filepath.Join(dir, "usr/lib/*-linux-*"))
	if len(libs) != 1 {
		return nil, fmt.Errorf("%s holds %d directories of libraries, not 1", dir, len(libs))
	}
	err = compile(ctx, dir, "cmpeer", "-I", filepath.Join(dir, "usr/include"), "../interop/testdata/cmpeer.c",
		"-L", libs[0], "-Wl,-rpath-link,"+libs[0], "-lrdmacm", "-libverbs")
	if err != nil {
		return nil, err
	}
	tmp, err := os.MkdirTemp("", "capi")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(tmp)
	if _, err := capi.Install(capi.Config{Prefix: tmp}); err != nil {
		return nil, err
	}
	page, err := os.ReadFile("../../docs/c.md")
	if err != nil {
		return nil, err
	}
	_, text, _ := strings.Cut(string(page), "```c hello.c\n")
	text, _, _ = strings.Cut(text, "\n```")
	source := filepath.Join(tmp, "hello.c")
	if err := os.WriteFile(source, []byte(text+"\n"), 0o644); err != nil {
		return nil, err
	}
	err = compile(ctx, dir, "hello", "-I", filepath.Join(tmp, "include/rdmashim"), source, filepath.Join(tmp, "lib/librdmashim.a"), "-lpthread")
	if err != nil {
		return nil, err
	}
	return cprograms.ProgramAdds(dir, "cmpeer", "hello")
}

// compile puts a program beside those of the packages in dir.
func compile(ctx context.Context, dir, name string, args ...string) error {
	cc, err := exec.LookPath("gcc")
	if err != nil {
		return fmt.Errorf("no gcc here, which compiles %s", name)
	}
	tmp, err := os.CreateTemp(filepath.Join(dir, "usr/bin"), "."+name)
	if err != nil {
		return err
	}
	tmp.Close()
	defer os.Remove(tmp.Name())
	args = append([]string{"-Wall", "-Werror", "-O1", "-o", tmp.Name()}, args...)
	if out, err := exec.CommandContext(ctx, cc, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("compile %s: %w\n%s", name, err, out)
	}
	return os.Rename(tmp.Name(), filepath.Join(dir, "usr/bin", name))
}
