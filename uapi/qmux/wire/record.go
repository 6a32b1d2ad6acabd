package wire

// DefaultMaxRecord is the largest record that a receiver accepts without
// having said so, in bytes without the Size; no receiver may accept less.
const DefaultMaxRecord = 16382

// ParseRecord finds the record at the start of b, which the receiver limits to
// max bytes without the Size. It returns the frames and the length of Size and
// frames together. While b ends before the record does, n is 0 and err nil: the
// caller keeps b and comes again with more. A Size that exceeds max is refused
// as soon as it is read. The error is ErrRecordEmpty, ErrRecordSize or nil.
func ParseRecord(b []byte, max int) (frames []byte, n int, err error) {
	size, k := ParseVarint(b)
	switch {
	case k == 0:
		return nil, 0, nil
	case size == 0:
		return nil, 0, ErrRecordEmpty
	case size > uint64(max):
		return nil, 0, ErrRecordSize
	case uint64(len(b)-k) < size:
		return nil, 0, nil
	}
	n = k + int(size)
	return b[k:n:n], n, nil
}
