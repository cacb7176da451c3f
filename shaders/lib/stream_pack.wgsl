// The marks of single rows, mark_K_R, become the words in which they are kept; the first mark of an item wins.
//$ for m in marks
//$ set k = loop.index0
//$ for word in range(words_of_marks)
    marks_{{ k }}[{{ word }}] =
//$ for r in range(8 * word, [8 * word + 8, vecs] | min)
//$ set bits = "mark_%d_%d" % (k, r) if k == 0 else "(mark_1_%d & ~mark_0_%d)" % (r, r)
      {{ "| " if not loop.first }}({{ bits }} << {{ 4 * (r % 8) }}u)
//$ endfor
    ;
//$ endfor
//$ endfor
