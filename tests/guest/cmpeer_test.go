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

	"github.com/rdmashim/rdmashim/vm"
	"github.com/rdmashim/rdmashim/vm/cprograms"
)

// addPeer adds ../interop/testdata/cmpeer.c, compiled against the packages'
// librdmacm, to what the guest gets, or tells the guest's tests why it is not
// there.
func addPeer(t *testing.T, adds []vm.Add, env []string) ([]vm.Add, []string) {
	t.Helper()
	more, err := peer(t.Context())
	if err != nil {
		require.NotEqual(t, "true", os.Getenv("CI"), "the peer in C: %v", err)
		t.Log("without the peer in C: ", err)
		return adds, append(env, "INTEROP_NO_PEER="+strings.ReplaceAll(err.Error(), "\n", " "))
	}
	for _, a := range more {
		if !slices.Contains(adds, a) {
			adds = append(adds, a)
		}
	}
	return adds, env
}

// peer compiles the peer and says where it and its libraries go.
func peer(ctx context.Context) ([]vm.Add, error) {
	dir, err := cprograms.Unpacked(ctx)
	if err != nil {
		return nil, err
	}
	cc, err := exec.LookPath("gcc")
	if err != nil {
		return nil, fmt.Errorf("no gcc here, which compiles ../interop/testdata/cmpeer.c")
	}
	libs, _ := filepath.Glob(filepath.Join(dir, "usr/lib/*-linux-*"))
	if len(libs) != 1 {
		return nil, fmt.Errorf("%s holds %d directories of libraries, not 1", dir, len(libs))
	}
	const name = "cmpeer"
	tmp, err := os.CreateTemp(filepath.Join(dir, "usr/bin"), "."+name)
	if err != nil {
		return nil, err
	}
	tmp.Close()
	defer os.Remove(tmp.Name())
	out, err := exec.CommandContext(ctx, cc, "-Wall", "-Werror", "-O1", "-I", filepath.Join(dir, "usr/include"), "-o", tmp.Name(),
		"../interop/testdata/cmpeer.c", "-L", libs[0], "-Wl,-rpath-link,"+libs[0], "-lrdmacm", "-libverbs").CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("compile ../interop/testdata/cmpeer.c: %w\n%s", err, out)
	}
	if err := os.Rename(tmp.Name(), filepath.Join(dir, "usr/bin", name)); err != nil {
		return nil, err
	}
	return cprograms.ProgramAdds(dir, name)
}
