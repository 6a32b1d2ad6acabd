package dissect

import (
	"bufio"
	"compress/gzip"
)

// unzip returns r, or a reader of its contents if it is gzipped.
func unzip(r *bufio.Reader) (*bufio.Reader, error) {
	if magic, err := r.Peek(2); err != nil || magic[0] != 0x1f || magic[1] != 0x8b {
		return r, nil // the next reader judges any other file
	}
	z, err := gzip.NewReader(r)
	if err != nil {
		return nil, notCapture(err)
	}
	return bufio.NewReader(z), nil
}
