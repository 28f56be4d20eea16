%fill static void fill(int count, ${real} *to)
%fill {
%fill     int i;
%fill
%fill     for (i = 0; i < count; i++)
%fill         to[i] = ${zero};
%fill }
%fill
static void copy(int count, const ${real} *from, ${real} *to)
{
    int i;

    for (i = 0; i < count; i++)
        to[i] = from[i];
}

/* Put new values in front of a window and drop as many old ones at its end. */
static void shift(int size, ${real} *window, int count, const ${real} *newest)
{
    int i;

    for (i = size - 1; i >= count; i--)
        window[i] = window[i - count];
    copy(count, newest, window);
}
