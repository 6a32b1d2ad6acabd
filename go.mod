module github.com/rdmashim/rdmashim

go 1.26
