/* A welded box beam: its weight, and by how much it exceeds the limits on stress and deflection.

   beam HEIGHT WIDTH PLIES THICKNESS     lengths in mm; a wall is made of PLIES sheets of THICKNESS
   prints the weight in kg, and two constraints, which hold where they are not positive            */

#include <stdio.h>
#include <stdlib.h>

int main(int count, char **given) {
    if (count != 5) {
        fprintf(stderr, "usage: beam HEIGHT WIDTH PLIES THICKNESS\n");
        return 2;
    }
    double height = atof(given[1]), width = atof(given[2]), wall = atoi(given[3]) * atof(given[4]);
    double length = 4000, load = 30e3, modulus = 210e3, density = 7.85e-6; /* mm, N, N/mm^2, kg/mm^3 */
    double inner_height = height - 2 * wall, inner_width = width - 2 * wall;
    if (inner_height <= 0 || inner_width <= 0) {
        fprintf(stderr, "the walls are thicker than the beam\n");
        return 3;
    }
    double area = height * width - inner_height * inner_width;
    double inertia = (width * height * height * height - inner_width * inner_height * inner_height * inner_height) / 12;
    double stress = load * length / 4 * height / 2 / inertia;
    double deflection = load * length * length * length / (48 * modulus * inertia);
    double welds = 0.4 * atoi(given[3]) * length / 1000; /* every ply needs welding wire */
    printf("weight %.9g\n", area * length * density + welds);
    printf("limit %.9g\nlimit %.9g\n", stress / 160 - 1, deflection / 10 - 1);
    return 0;
}
