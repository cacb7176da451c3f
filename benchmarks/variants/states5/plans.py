# Name, log2 n, rows (lengths of runs), forms: as an example those of "states apart". Forms are switches of forms.patch (on 97e2afb5).
SB = ("sheads", "bank")
Q = ("quick",)
def u(*a, **k): return e("unique", *a, **k)
PLANS = [
    ("unique", 24, ("8", "1", "1000"), [u("", *SB), u("", *SB, pad=8), u("", *SB, *Q, pad=8, look=1), u("", *SB, "no_look"), u("", *SB, fake=0), u("", *SB, fake=1), u("", *SB, fake=1, pad=8), u("", *SB, fake=1, far=400)]),
    ("select", 24, ("1",), [e("select", ""), e("select", "", pad=8), e("select", "256x8", ahead=0), e("select", "256x8", pad=8, ahead=0)]),
]
