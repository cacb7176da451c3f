// Stores the results of a row that is whole, quad by quad.
    store4_output(i{{ " + %du" % (4 * q) if q }}, lower4(results_{{ q }}));  //$ for q in range(quads)
