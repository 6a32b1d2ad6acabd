#include "textflag.h"

// Constants to fold over D bits: x^(D+32) and x^(D-32), reflected, one bit to
// the left. TestConstants computes them.
DATA over2048<>+0(SB)/8, $0x11542778a
DATA over2048<>+8(SB)/8, $0x1322d1430
GLOBL over2048<>(SB), RODATA, $16
DATA over256<>+0(SB)/8, $0x0f1da05aa
DATA over256<>+8(SB)/8, $0x15a546366
GLOBL over256<>(SB), RODATA, $16
DATA over128<>+0(SB)/8, $0x1751997d0
DATA over128<>+8(SB)/8, $0x0ccaa009e
GLOBL over128<>(SB), RODATA, $16

// FOLD moves the 16-byte lanes of acc over as many bits as the constants in Y0
// say, and adds data. It spoils tmp.
#define FOLD(acc, tmp, data) \
	VPCLMULQDQ $0x11, Y0, acc, tmp \
	VPCLMULQDQ $0x00, Y0, acc, acc \
	VPXOR      tmp, acc, acc       \
	VPXOR      data, acc, acc

// COPY copies 32 bytes at off, and leaves them in data.
#define COPY(off, data) \
	VMOVDQU off(SI), data \
	VMOVDQU data, off(DI)

// JOIN makes the lane X1 of Y1 to Y8.
#define JOIN \
	VBROADCASTI128 over256<>(SB), Y0 \
	FOLD(Y1, Y9, Y2)                 \
	FOLD(Y1, Y9, Y3)                 \
	FOLD(Y1, Y9, Y4)                 \
	FOLD(Y1, Y9, Y5)                 \
	FOLD(Y1, Y9, Y6)                 \
	FOLD(Y1, Y9, Y7)                 \
	FOLD(Y1, Y9, Y8)                 \
	VEXTRACTI128 $1, Y1, X2          \
	VMOVDQU    over128<>(SB), X0     \
	VPCLMULQDQ $0x11, X0, X1, X9     \
	VPCLMULQDQ $0x00, X0, X1, X1     \
	VPXOR      X9, X1, X1            \
	VPXOR      X2, X1, X1            \
	VZEROUPPER

// func fold(p *byte, n int, r uint32) (lo, hi uint64)
TEXT ·fold(SB), NOSPLIT, $0-40
	MOVQ p+0(FP), SI
	MOVQ n+8(FP), CX
	MOVL r+16(FP), AX
	VMOVD AX, X9
	VPXOR (SI), Y9, Y1
	VMOVDQU 32(SI), Y2
	VMOVDQU 64(SI), Y3
	VMOVDQU 96(SI), Y4
	VMOVDQU 128(SI), Y5
	VMOVDQU 160(SI), Y6
	VMOVDQU 192(SI), Y7
	VMOVDQU 224(SI), Y8
	VBROADCASTI128 over2048<>(SB), Y0
	JMP next
turn:
	FOLD(Y1, Y9, (SI))
	FOLD(Y2, Y10, 32(SI))
	FOLD(Y3, Y11, 64(SI))
	FOLD(Y4, Y12, 96(SI))
	FOLD(Y5, Y13, 128(SI))
	FOLD(Y6, Y14, 160(SI))
	FOLD(Y7, Y15, 192(SI))
	FOLD(Y8, Y9, 224(SI))
next:
	ADDQ $256, SI
	SUBQ $256, CX
	JNZ  turn
	JOIN
	MOVQ   X1, lo+24(FP)
	PEXTRQ $1, X1, hi+32(FP)
	RET

// func foldCopy(dst, src *byte, n int) (lo, hi uint64)
TEXT ·foldCopy(SB), NOSPLIT, $0-40
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), CX
	COPY(0, Y1)
	COPY(32, Y2)
	COPY(64, Y3)
	COPY(96, Y4)
	COPY(128, Y5)
	COPY(160, Y6)
	COPY(192, Y7)
	COPY(224, Y8)
	VBROADCASTI128 over2048<>(SB), Y0
	JMP next
turn:
	COPY(0, Y10)
	FOLD(Y1, Y9, Y10)
	COPY(32, Y12)
	FOLD(Y2, Y11, Y12)
	COPY(64, Y14)
	FOLD(Y3, Y13, Y14)
	COPY(96, Y10)
	FOLD(Y4, Y9, Y10)
	COPY(128, Y12)
	FOLD(Y5, Y11, Y12)
	COPY(160, Y14)
	FOLD(Y6, Y13, Y14)
	COPY(192, Y10)
	FOLD(Y7, Y9, Y10)
	COPY(224, Y12)
	FOLD(Y8, Y11, Y12)
next:
	ADDQ $256, SI
	ADDQ $256, DI
	SUBQ $256, CX
	JNZ  turn
	JOIN
	MOVQ   X1, lo+24(FP)
	PEXTRQ $1, X1, hi+32(FP)
	RET

// func clmul(a, b uint32) uint64
TEXT ·clmul(SB), NOSPLIT, $0-16
	MOVL a+0(FP), X0
	MOVL b+4(FP), X1
	PCLMULQDQ $0, X1, X0
	MOVQ X0, ret+8(FP)
	RET

// func multipliesWide() bool
TEXT ·multipliesWide(SB), NOSPLIT, $0-1
	MOVL $7, AX
	XORL CX, CX
	CPUID
	SHRL $10, CX
	ANDL $1, CX
	MOVB CX, ret+0(FP)
	RET
