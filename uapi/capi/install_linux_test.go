package capi

import (
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
)

// TestFoundingProgram takes the complete example out of the founding document
// as it is. It writes with a made-up key, on a queue pair that it does not
// connect, and ends without its message.
func TestFoundingProgram(t *testing.T) {
	home := installed(t)
	document := must.Get(os.ReadFile("testdata/rdma-api.txt"))(t)
	_, example, _ := strings.Cut(string(document), "## Complete Example Program")
	m := regexp.MustCompile("(?s)```c\n(.*?)```").FindStringSubmatch(example)
	require.NotNil(t, m)
	source := filepath.Join(t.TempDir(), "example.c")
	require.NoError(t, os.WriteFile(source, []byte(m[1]), 0o644))
	for _, static := range []bool{false, true} {
		start(t, "sim", compile(t, home, static, source)).prints("")
	}
}

// TestDeclarations holds rdma.h to the document's declarations.
func TestDeclarations(t *testing.T) {
	document := must.Get(os.ReadFile("testdata/rdma-api.txt"))(t)
	spaces := regexp.MustCompile(`\s+`)
	plain := func(s string) string {
		return spaces.ReplaceAllString(strings.NewReplacer("uint64_t", "uint64", "uint32_t", "uint32").Replace(s), " ")
	}
	declared := regexp.MustCompile(`(?s)int (rdma_\w+)\([^)]*\)`)
	found := map[string]string{}
	for _, m := range declared.FindAllStringSubmatch(rdmaHeader, -1) {
		found[m[1]] = plain(m[0])
	}
	calls := declared.FindAllStringSubmatch(string(document), -1)
	require.Len(t, calls, 7)
	for _, m := range calls {
		require.Equal(t, plain(m[0]), found[m[1]])
	}
	for _, m := range regexp.MustCompile("(RDMA_[A-Z_]+)`").FindAllStringSubmatch(string(document), -1) {
		require.Contains(t, rdmaHeader, "\t"+m[1]+" = ")
	}
}

// TestCalls makes each call rightly and wrongly, also under AddressSanitizer.
func TestCalls(t *testing.T) {
	home := installed(t)
	flags := []string{"-O1", "-Wall", "-Wextra", "-Werror", "testdata/calls.c"}
	const want = "all calls are as they should be\n"
	t.Run("shared", func(t *testing.T) { start(t, "sim", compile(t, home, false, flags...)).prints(want) })
	t.Run("archive", func(t *testing.T) { start(t, "sim", compile(t, home, true, flags...)).prints(want) })
	t.Run("AddressSanitizer", func(t *testing.T) {
		program := compile(t, home, false, append(flags, "-fsanitize=address", "-g")...)
		if exec.Command("setarch", "-R", "true").Run() == nil { // for gcc before 14 where vm.mmap_rnd_bits is 32
			start(t, "sim", "setarch", "-R", program).prints(want)
		} else {
			start(t, "sim", program).prints(want)
		}
	})
}

// TestSymbols: neither library has a symbol that another may have.
func TestSymbols(t *testing.T) {
	lib := filepath.Join(installed(t), ".local", "lib")
	f := must.Get(elf.Open(filepath.Join(lib, linkName)))(t)
	defer f.Close()
	soname := must.Get(f.DynString(elf.DT_SONAME))(t)
	require.Equal(t, []string{sharedName}, soname)
	symbols := must.Get(f.DynamicSymbols())(t)
	var names []string
	for _, s := range symbols {
		if s.Section != elf.SHN_UNDEF {
			names = append(names, s.Name)
		}
	}
	out := must.Get(exec.Command("nm", "-g", "--defined-only", filepath.Join(lib, staticName)).Output())(t)
	for line := range strings.Lines(string(out)) {
		if fields := strings.Fields(line); len(fields) == 3 {
			names = append(names, fields[2])
		}
	}
	calls := regexp.MustCompile(`RDMASHIM\((\w+)\);`).FindAllStringSubmatch(rdmaHeader, -1)
	var want []string
	for _, m := range calls {
		want = append(want, "rdmashim_"+m[1], "rdmashim_"+m[1])
	}
	require.ElementsMatch(t, want, names)
}

// TestBesideLibrdmacm links both libraries into a program, librdmacm first.
func TestBesideLibrdmacm(t *testing.T) {
	home := installed(t)
	if _, err := os.Stat("/usr/include/rdma/rdma_cma.h"); err != nil {
		require.NotEqual(t, "true", os.Getenv("CI"), "%v", err)
		t.Skip(err, ": apt-get install librdmacm-dev")
	}
	for _, static := range []bool{false, true} {
		program := compile(t, home, static, "-Wall", "-Werror", "-Wl,--no-as-needed", "-lrdmacm", "testdata/beside.c", "testdata/beside_cm.c")
		start(t, "sim", program).prints("each has its own\n")
	}
}

func TestInstallRefuses(t *testing.T) {
	for _, prefix := range []string{"", "usr", "/a\nb", "/a b", "/$a", "/'a"} {
		_, err := Install(Config{Prefix: prefix, DestDir: t.TempDir()})
		require.ErrorContains(t, err, "no absolute path")
	}
}

// TestDestDir: a package's files lie below its directory and name the prefix.
func TestDestDir(t *testing.T) {
	lib, dest := filepath.Join(installed(t), ".local", "lib"), t.TempDir()
	config := Config{Prefix: "/usr", DestDir: dest}
	for range 2 { // also over what is there
		paths := must.Get(config.place(lib))(t)
		require.Len(t, paths, 7)
		for _, path := range paths {
			require.FileExists(t, path)
			require.True(t, strings.HasPrefix(path, dest+"/usr/"), path)
		}
	}
	text := must.Get(os.ReadFile(filepath.Join(dest, "usr/lib/pkgconfig/rdmashim.pc")))(t)
	require.Contains(t, string(text), "prefix=/usr\n")
	require.NotContains(t, string(text), dest)
	target := must.Get(os.Readlink(filepath.Join(dest, "usr/lib", linkName)))(t)
	require.Equal(t, sharedName, target)
}

// TestReplaceFails: a file that cannot be had leaves nothing beside its place.
func TestReplaceFails(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "taken", "full"), 0o700))
	require.Error(t, replace(filepath.Join(dir, "taken"), []byte("library"), 0o755))
	require.Len(t, must.Get(os.ReadDir(dir))(t), 1)
}
