package guest

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// PackPath writes the file or directory at host into tw, as name and names
// below it. A symbolic link at host itself is followed, ones below are kept;
// entries of other kinds are left out.
func PackPath(tw *tar.Writer, host, name string) error {
	root, err := filepath.EvalSymlinks(host)
	if err != nil {
		return err
	}
	return filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, p) // p begins with root
		info, err := d.Info()
		if err != nil {
			return err
		}
		return packOne(tw, p, path.Join(name, filepath.ToSlash(rel)), info)
	})
}

func packOne(tw *tar.Writer, host, name string, info fs.FileInfo) error {
	target := ""
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		var err error
		if target, err = os.Readlink(host); err != nil {
			return err
		}
	case !info.IsDir() && !info.Mode().IsRegular():
		return nil
	}
	h, err := tar.FileInfoHeader(info, target)
	if err != nil {
		return err
	}
	// The owner on one side means nothing on the other.
	h.Name, h.Uid, h.Gid, h.Uname, h.Gname = name, 0, 0, "", ""
	if info.IsDir() {
		h.Name += "/"
	}
	if err := tw.WriteHeader(h); err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return nil
	}
	f, err := os.Open(host)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.CopyN(tw, f, info.Size())
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("%s became shorter while it was read", host)
	}
	return err
}

// entrySize is what an entry counts beside its content: a tar's header.
const entrySize = 512

// Unpack writes a tar's files, directories and symbolic links under dir, and
// nothing outside of it. Contents and headers of more than limit bytes are
// EFBIG; files before that stay. A sparse file counts as it is written: whole.
func Unpack(r io.Reader, dir string, limit int64) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	tr := tar.NewReader(r)
	for {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if limit -= entrySize; h.Size > limit {
			return fmt.Errorf("unpack %s: more files than can be taken: %w", h.Name, syscall.EFBIG)
		}
		limit -= h.Size
		if err := unpackOne(root, h, tr); err != nil {
			return fmt.Errorf("unpack %s: %w", h.Name, err)
		}
	}
}

func unpackOne(root *os.Root, h *tar.Header, content io.Reader) error {
	name := strings.TrimPrefix(path.Clean("/"+h.Name), "/")
	if name == "" {
		return nil
	}
	mode := h.FileInfo().Mode().Perm()
	if h.Typeflag == tar.TypeDir {
		return root.MkdirAll(name, mode|0o700)
	}
	if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return err
	}
	switch h.Typeflag {
	case tar.TypeReg:
		return unpackFile(root, name, mode, h.ModTime, content)
	case tar.TypeSymlink:
		root.Remove(name)
		return root.Symlink(h.Linkname, name)
	}
	return nil
}

func unpackFile(root *os.Root, name string, mode fs.FileMode, at time.Time, content io.Reader) error {
	root.Remove(name) // a running program's file cannot be written, but replaced
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, content)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return err
	}
	if err := root.Chmod(name, mode); err != nil {
		return err
	}
	return root.Chtimes(name, at, at)
}
