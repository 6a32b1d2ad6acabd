package dissect

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"io"
)

// MaxUnzipped is how many bytes a gzipped file holds at most, as a rule.
const MaxUnzipped = 1 << 30

// unzip returns r, or a reader of its contents if it is gzipped, of which it
// reads most bytes: a megabyte may hold a gigabyte.
func unzip(r *bufio.Reader, most int64) (*bufio.Reader, error) {
	if magic, err := r.Peek(2); err != nil || magic[0] != 0x1f || magic[1] != 0x8b {
		return r, nil // the next reader judges any other file
	}
	z, err := gzip.NewReader(r)
	if err != nil {
		return nil, notCapture(err)
	}
	return bufio.NewReader(&bounded{z, most, most}), nil
}

// bounded is a reader of left more bytes.
type bounded struct {
	r          io.Reader
	left, most int64
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		if n, err := b.r.Read(make([]byte, 1)); n == 0 {
			return 0, err
		}
		return 0, fmt.Errorf("it holds more than %d bytes once unzipped (--max-unzipped)", b.most)
	}
	n, err := b.r.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}
