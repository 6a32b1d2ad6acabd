package nvme

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
)

// blockShift is log2 of the bytes of a block of the target's namespaces.
const blockShift = 9

// Disk is what a namespace holds its blocks in. Its methods may be called at
// the same time.
type Disk interface {
	io.ReaderAt
	io.WriterAt
	Sync() error // returns when all that was written is on stable storage
	Size() int64 // bytes, a multiple of 512; never changes
}

// FileDisk is a file, or a block device, that keeps its size.
type FileDisk struct {
	*os.File
	size int64
}

// Size is what the file had when it was opened.
func (d *FileDisk) Size() int64 { return d.size }

// NewDisk makes a disk that is forgotten when it is closed. Errors are those of
// OpenDisk.
func NewDisk(size int64) (*FileDisk, error) {
	if err := checkSize("the disk", size); err != nil {
		return nil, err
	}
	f, err := os.CreateTemp("", "rdmashim-nvme-")
	if err != nil {
		return nil, err
	}
	defer os.Remove(f.Name())
	if err := errors.Join(f.Truncate(size), f.Close()); err != nil {
		return nil, err
	}
	return OpenDisk(f.Name())
}

func checkSize(name string, size int64) error {
	if size <= 0 || size%(1<<blockShift) != 0 {
		return fmt.Errorf("%s has %d bytes, not a positive multiple of %d: %w", name, size, 1<<blockShift, syscall.EINVAL)
	}
	return nil
}

// OpenDisk opens a file as a disk. EINVAL for a size that is not a positive
// multiple of 512 bytes.
func OpenDisk(name string) (*FileDisk, error) {
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	size, err := f.Seek(0, io.SeekEnd) // a block device has no size to Stat
	if err == nil {
		err = checkSize(name, size)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return &FileDisk{f, size}, nil
}
