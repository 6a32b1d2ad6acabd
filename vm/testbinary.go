package vm

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"
)

// ExecTest boots a guest for one test binary that 'go test' built, as its -exec
// program: args are the binary and its flags, the current directory is the
// package's.
func ExecTest(ctx context.Context, c Config, args []string) (*Result, error) {
	dir, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	_, _, limit := guestTestFlags(args[1:], dir)
	if limit > 0 {
		c.Timeout = limit + time.Minute // the binary itself tells more about a test that hangs
	}
	s, err := Start(ctx, c)
	if err != nil {
		return &s.result, err
	}
	err = s.execTest(ctx, args, dir, c.Command)
	result, cerr := s.Close()
	return result, joinFlat(err, cerr)
}

// profileDir is the guest's directory for the files that flags of test binaries
// name.
const profileDir = "/profiles"

// execTest runs a test binary in the first guest: in a directory of the
// package's name that holds the module's testdata. Files that the binary's
// flags name are brought back to the place where 'go test' expects them. c
// names the places of output.
func (s *Session) execTest(ctx context.Context, args []string, dir string, c Command) error {
	m := s.Nodes[0]
	flags, files, _ := guestTestFlags(args[1:], dir)
	binary := path.Join("/test", filepath.Base(args[0]))
	libraries, err := SharedLibraries(args[0]) // the race detector's binaries need some
	if err != nil {
		return err
	}
	adds := []Add{{args[0], binary}}
	for _, file := range append(libraries, testdataDirs(moduleOf(dir))...) {
		if a := (Add{file, filepath.ToSlash(file)}); !s.pushed[a] {
			adds = append(adds, a)
			s.pushed[a] = true
		}
	}
	if d := files[coverDir]; d != "" {
		adds = append(adds, Add{d, path.Join(profileDir, coverDir)})
	}
	c.Args, c.Dir = append([]string{binary}, flags...), filepath.ToSlash(dir)
	ctx, cancel := s.budget.bound(ctx)
	defer cancel()
	err = m.Push(ctx, adds...)
	if err == nil && len(files) > 0 {
		err = s.exec(ctx, m, Command{Args: []string{"mkdir", "-p", profileDir}})
	}
	if err != nil {
		s.fail(err)
		return err
	}
	err = s.exec(ctx, m, c)
	var exit *ExitError
	if err != nil && !errors.As(err, &exit) {
		return err
	}
	out, terr := os.MkdirTemp("", "rdmashim-profiles-")
	if terr != nil {
		return joinFlat(err, terr)
	}
	defer os.RemoveAll(out)
	if len(files) > 0 {
		err = joinFlat(err, m.Pull(ctx, profileDir, out))
	}
	for name, host := range files {
		if from := filepath.Join(out, name); isFile(from) || isDir(from) {
			err = joinFlat(err, copyBack(from, host))
		}
	}
	// Its files are in the guest's memory.
	return joinFlat(err, s.exec(ctx, m, Command{Args: []string{"rm", "-rf", binary, profileDir}}))
}

// testdataDirs lists the directories of test data of a module, since a
// package's tests may read another's.
func testdataDirs(module string) []string {
	var dirs []string
	filepath.WalkDir(module, func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return fs.SkipDir // the test misses an unreadable file, not we
		case !d.IsDir():
			return nil
		case d.Name() == "testdata":
			dirs = append(dirs, p)
			return fs.SkipDir
		case p != module && (strings.HasPrefix(d.Name(), ".") || isFile(filepath.Join(p, "go.mod"))):
			return fs.SkipDir
		}
		return nil
	})
	return dirs
}

// moduleOf finds the module that a directory belongs to, else the directory.
func moduleOf(dir string) string {
	for d := dir; ; d = filepath.Dir(d) {
		if isFile(filepath.Join(d, "go.mod")) {
			return d
		}
		if d == filepath.Dir(d) {
			return dir
		}
	}
}

// copyBack copies a file, or a directory's files.
func copyBack(from, to string) error {
	if isDir(from) {
		entries, err := os.ReadDir(from)
		for _, e := range entries {
			err = joinFlat(err, copyBack(filepath.Join(from, e.Name()), filepath.Join(to, e.Name())))
		}
		return err
	}
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o644)
}

// fileFlags are flags of test binaries that name a file to write.
var fileFlags = map[string]bool{"coverprofile": true, "cpuprofile": true, "memprofile": true, "blockprofile": true, "mutexprofile": true, "trace": true, coverDir: true}

const coverDir = "gocoverdir" // names a directory, which must be there

// guestTestFlags rewrites the flags of a test binary for the guest: files are
// written to profileDir and listed, by name there, with their place on the
// host. The log by which 'go test' caches results is left out: it would tell of
// the guest's files. The time limit is returned as well.
func guestTestFlags(args []string, dir string) (flags []string, files map[string]string, limit time.Duration) {
	files = map[string]string{}
	for _, a := range args {
		if v, ok := strings.CutPrefix(a, "-test.outputdir="); ok {
			dir = v
		}
	}
	for _, a := range args {
		name, value, _ := strings.Cut(a, "=")
		name, ours := strings.CutPrefix(name, "-test.")
		switch {
		case !ours:
		case name == "testlogfile", name == "outputdir":
			continue
		case name == "timeout":
			limit, _ = time.ParseDuration(value)
		case fileFlags[name] && value != "":
			if !filepath.IsAbs(value) {
				value = filepath.Join(dir, value)
			}
			files[name] = value
			a = "-test." + name + "=" + path.Join(profileDir, name)
		}
		flags = append(flags, a)
	}
	return flags, files, limit
}
