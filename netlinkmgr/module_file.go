package netlinkmgr

import (
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"path"
	"syscall"

	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"
)

// maxModule bounds an unpacked module: a file from a package may be damaged,
// and a few kilobytes of xz can stand for gigabytes.
const maxModule = 256 << 20

// unpackModule unpacks a compressed module file, told by its suffix. For a
// plain one it reads nothing and says so.
func unpackModule(name string, r io.Reader) (image []byte, compressed bool, err error) {
	var u io.Reader
	switch path.Ext(name) {
	case ".ko":
		return nil, false, nil
	case ".xz":
		u, err = xz.NewReader(bufio.NewReader(r))
	case ".gz":
		u, err = gzip.NewReader(r)
	case ".zst":
		var d *zstd.Decoder
		if d, err = zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxModule)); err == nil {
			defer d.Close()
			u = d
		}
	default:
		return nil, false, fmt.Errorf("unknown kind of module file %q (.ko, .ko.xz, .ko.zst and .ko.gz are known): %w", path.Ext(name), errors.ErrUnsupported)
	}
	if err != nil {
		return nil, true, err
	}
	image, err = io.ReadAll(io.LimitReader(u, maxModule+1))
	if err == nil && len(image) > maxModule {
		err = fmt.Errorf("more than %d bytes: %w", maxModule, syscall.EFBIG)
	}
	return image, true, err
}
