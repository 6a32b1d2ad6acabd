package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"
	"time"
)

// An entry is a file of a release or of its archive.
type entry struct {
	name string
	mode int64
	data []byte
}

// archive returns a compressed tar of the program and of the licenses of its
// modules. Its times are those of the zips of modules, 1980.
func (in installer) archive(binary string, info *debug.BuildInfo) ([]byte, error) {
	data, err := os.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	goroot, err := output(exec.Command("go", "env", "GOROOT"))
	if err != nil {
		return nil, err
	}
	entries, err := licenses("stdlib", strings.TrimSpace(goroot))
	for _, m := range append([]*debug.Module{&info.Main}, info.Deps...) {
		var more []entry
		if err == nil {
			more, err = licenses(m.Path, in.folder(m))
			entries = append(entries, more...)
		}
	}
	if err != nil {
		return nil, err
	}
	entries = append(entries, entry{program, 0o755, data})

	var b bytes.Buffer
	z, _ := gzip.NewWriterLevel(&b, gzip.BestCompression)
	w := tar.NewWriter(z)
	for _, e := range entries {
		if err := w.WriteHeader(&tar.Header{Name: e.name, Mode: e.mode, Size: int64(len(e.data)), ModTime: time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)}); err != nil {
			return nil, err
		}
		if _, err := w.Write(e.data); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	err = z.Close()
	return b.Bytes(), err
}

var capital = regexp.MustCompile(`[A-Z]`)

// folder returns where the sources of a module are.
func (in installer) folder(m *debug.Module) string {
	escaped := capital.ReplaceAllStringFunc(m.Path+"@"+m.Version, func(c string) string { return "!" + strings.ToLower(c) })
	return filepath.Join(in.modules(), escaped)
}

// licenses returns the files in the folder of a module that those who pass its
// program on have to add.
func licenses(module, dir string) (entries []entry, err error) {
	for _, pattern := range []string{"LICEN[SC]E*", "COPYING*", "NOTICE*"} {
		paths, _ := filepath.Glob(filepath.Join(dir, pattern))
		for _, p := range paths {
			data, err := os.ReadFile(p)
			if err != nil {
				return nil, err
			}
			entries = append(entries, entry{"licenses/" + module + "/" + filepath.Base(p), 0o644, data})
		}
	}
	if len(entries) == 0 {
		return nil, fmt.Errorf("no license of %s in %s", module, dir)
	}
	return entries, nil
}
