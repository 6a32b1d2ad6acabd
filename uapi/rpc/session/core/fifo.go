package core

// fifo is a queue in a slice. It reuses its memory: popped items are moved over
// when they are as many as those that are left.
type fifo[T any] struct {
	items []T
	head  int
}

func (f *fifo[T]) len() int    { return len(f.items) - f.head }
func (f *fifo[T]) at(i int) *T { return &f.items[f.head+i] }
func (f *fifo[T]) push(item T) { f.items = append(f.items, item) }

func (f *fifo[T]) pop(n int) {
	f.head += n
	if f.head >= f.len() {
		left := copy(f.items, f.items[f.head:])
		f.items, f.head = f.items[:left], 0
	}
}
