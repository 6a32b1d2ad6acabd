package capi

import (
	_ "embed"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/rdmashim/rdmashim/kshim/cbuild"
)

// The headers, under the names by which the document's programs include them.
var (
	//go:embed lib/rdma.h
	rdmaHeader string
	//go:embed lib/user.h
	userHeader string
	//go:embed lib/types.h
	typesHeader string
)

const (
	sharedName = "librdmashim.so.0" // its soname; programs of version 0 need it
	linkName   = "librdmashim.so"
	staticName = "librdmashim.a"
)

// exported are the library's symbols: neither Go's nor the compiler's, so that
// none is another library's, too.
const exported = "{ global: rdmashim_*; local: *; };\n"

const pkgConfig = `prefix=%s
libdir=${prefix}/lib
includedir=${prefix}/include

Name: rdmashim
Description: RDMA for C programs, with or without an RDMA device
Version: 0
Cflags: -I${includedir}/rdmashim
Libs: -L${libdir} -lrdmashim
Libs.private: -lpthread
`

// Config says where Install puts the files.
type Config struct {
	// Prefix is the directory in which lib and include lie when the library is
	// used; an absolute path.
	Prefix string
	// DestDir is put before Prefix for now, as packagers need it; or "".
	DestDir string
}

// Install builds librdmashim and installs it below config.DestDir and
// config.Prefix, over what is there. It returns the paths of the files.
//
// Errors, in one line: the prefix is not absolute, or pkg-config would not take
// it; there is no C compiler, go command, objcopy or ar; the sources are not to
// be had; a file cannot be written.
func Install(config Config) ([]string, error) {
	if !filepath.IsAbs(config.Prefix) || strings.ContainsAny(config.Prefix, " \t\n$\"'\\") {
		return nil, fmt.Errorf("the prefix %q is no absolute path without blanks, quotes and $", config.Prefix)
	}
	tmp, err := os.MkdirTemp("", "rdmashim-capi-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(tmp)
	if err := build(tmp); err != nil {
		return nil, err
	}
	return config.place(tmp)
}

// place installs the two libraries of a directory, and the files that go with
// them.
func (config Config) place(built string) (paths []string, err error) {
	top := filepath.Join(config.DestDir, config.Prefix)
	lib, include := filepath.Join(top, "lib"), filepath.Join(top, "include", "rdmashim")
	files := []struct{ path, text, built string }{
		{path: filepath.Join(lib, sharedName), built: sharedName},
		{path: filepath.Join(lib, staticName), built: staticName},
		{path: filepath.Join(lib, "pkgconfig", "rdmashim.pc"), text: fmt.Sprintf(pkgConfig, config.Prefix)},
		{path: filepath.Join(include, "kernel", "types.h"), text: typesHeader},
		{path: filepath.Join(include, "user", "user.h"), text: userHeader},
		{path: filepath.Join(include, "user", "rdma.h"), text: rdmaHeader},
	}
	for _, f := range files {
		text, mode := []byte(f.text), os.FileMode(0o644)
		if f.built != "" {
			if text, err = os.ReadFile(filepath.Join(built, f.built)); err != nil {
				return nil, err
			}
		}
		if f.built == sharedName {
			mode = 0o755
		}
		if err := replace(f.path, text, mode); err != nil {
			return nil, err
		}
		paths = append(paths, f.path)
	}
	link := filepath.Join(lib, linkName)
	_ = os.Remove(link)
	return append(paths, link), os.Symlink(sharedName, link)
}

// replace writes a file beside its place and moves it there: programs that run
// keep the library that they have.
func replace(path string, text []byte, mode os.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	next := path + ".new"
	err := os.WriteFile(next, text, mode)
	if err == nil {
		err = os.Chmod(next, mode)
	}
	if err == nil {
		err = os.Rename(next, path)
	}
	if err != nil {
		_ = os.Remove(next) // half of a library would fill what is full
	}
	return err
}

// build makes the two libraries in dir.
func build(dir string) error {
	cc, err := cbuild.Compiler()
	if err != nil {
		return err
	}
	script := filepath.Join(dir, "exported")
	if err := os.WriteFile(script, []byte(exported), 0o600); err != nil {
		return err
	}
	const source = "./uapi/capi/lib"
	if err := cbuild.Library(io.Discard, cc, "c-shared", source, filepath.Join(dir, sharedName), "-Wl,-soname,"+sharedName, "-Wl,--version-script="+script); err != nil {
		return err
	}
	archive := filepath.Join(dir, "whole.a")
	if err := cbuild.Library(io.Discard, cc, "c-archive", source, archive); err != nil {
		return err
	}
	object := filepath.Join(dir, "rdmashim.o")
	for _, c := range [][]string{
		{cc, "-nostdlib", "-r", "-Wl,-d,--whole-archive", archive, "-o", object},
		{"objcopy", "--wildcard", "--keep-global-symbol=rdmashim_*", object},
		{"ar", "rcs", filepath.Join(dir, staticName), object},
	} {
		if err := cbuild.Run(exec.Command(c[0], c[1:]...), io.Discard); err != nil {
			return err
		}
	}
	return nil
}
